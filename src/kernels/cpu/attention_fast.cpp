#include "kernels/cpu/attention_fast.h"

namespace reckon::kernels::cpu {
namespace {

// Of each thread: queries and outputs [head_dim, 16], scores [block, 16].
uint64_t scratch_bytes(int64_t head_dim, int64_t block, int threads) {
  const int64_t floats = (2 * head_dim + block) * kQueryLanes;
  return static_cast<uint64_t>(floats) * sizeof(float) * static_cast<uint64_t>(threads);
}

}  // namespace

uint64_t fast_attention_scratch_bytes(int64_t head_dim, int threads) {
  return scratch_bytes(head_dim, kFastKeyBlock, threads);
}

uint64_t float_attention_scratch_bytes(int64_t head_dim, int threads) {
  return scratch_bytes(head_dim, kFloatKeyBlock, threads);
}

}  // namespace reckon::kernels::cpu
