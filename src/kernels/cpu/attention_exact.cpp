#include "kernels/cpu/attention_exact.h"

namespace reckon::kernels::cpu {

uint64_t attention_scratch_bytes(int64_t head_dim, int threads) {
  // Whole cache lines a thread.
  const auto columns = static_cast<uint64_t>((head_dim + 15) / 16 * 16);
  return columns * sizeof(float) * static_cast<uint64_t>(threads);
}

}  // namespace reckon::kernels::cpu
