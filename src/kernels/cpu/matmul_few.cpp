#include "kernels/cpu/matmul_few.h"

#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {

uint64_t stream_matmul_scratch(DType type, int64_t rows, int64_t k) {
  return aligned(rows * activation_groups(type, k) * static_cast<int64_t>(sizeof(ByteGroup)));
}

FewMatmulScratch few_matmul_scratch(int64_t k, int threads) {
  constexpr int64_t kSums = 4;
  FewMatmulScratch scratch;
  scratch.threads = static_cast<uint64_t>(k / kTileColumns * kTileBytes);
  scratch.thread_bytes = static_cast<uint64_t>((2 * kPartTiles + kSums) * kTileBytes);
  scratch.total = scratch.threads + static_cast<uint64_t>(threads) * scratch.thread_bytes;
  return scratch;
}

}  // namespace reckon::kernels::cpu
