// Embedding from a table that lies in device memory as tiles (weight_tiles.h), as the matmul
// kernels want it: tied models keep one copy. Exact: the values of unpack_tile_row(), bit for bit,
// so that reference and exact differ in name only. Tokens from the queue. Types f32, f16, bf16, p4,
// p8. Plain types only.
#pragma once

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

void embedding_tiles_exact(const EmbeddingArgs& args, KernelContext& context);
void embedding_tiles_reference(const EmbeddingArgs& args, KernelContext& context);
[[nodiscard]] const char* embedding_tiles_exact_hash();
[[nodiscard]] const char* embedding_tiles_reference_hash();

}  // namespace reckon::kernels::cuda
