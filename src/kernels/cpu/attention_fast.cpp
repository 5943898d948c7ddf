#include "kernels/cpu/attention_fast.h"

namespace reckon::kernels::cpu {

// Of each thread: queries and outputs [head_dim, 16], scores [kFastKeyBlock, 16].
uint64_t fast_attention_scratch_bytes(int64_t head_dim, int threads) {
  const int64_t floats = (2 * head_dim + kFastKeyBlock) * kQueryLanes;
  return static_cast<uint64_t>(floats) * sizeof(float) * static_cast<uint64_t>(threads);
}

}  // namespace reckon::kernels::cpu
