// Embedding from a table that is kept as tiles (weight_tiles.h), which is how this backend keeps
// every matrix: a tied table is the head, too. Gives each weight exactly as its format defines it,
// so that it is exact and the reference at once. Plain types only.
#pragma once

#include <string>

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

// Tokens from the queue.
void embedding_tiles(const EmbeddingArgs& args, KernelContext& context);
void embedding_tiles_reference(const EmbeddingArgs& args, KernelContext& context);
[[nodiscard]] const char* embedding_tiles_hash();

}  // namespace reckon::kernels::cuda
