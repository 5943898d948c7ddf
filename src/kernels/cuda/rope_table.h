// The frequencies of a rotary embedding as the CUDA kernels take them: by value, computed on the
// host in float64, so that no kernel needs a power.
#pragma once

#include <cmath>
#include <cstdint>

namespace reckon::kernels::cuda {

inline constexpr int64_t kMaxRopePairs = 128;  // head_dim up to 256

struct RopeTable {
  double turns[kMaxRopePairs];  // pair i: base^(-2i / dims) / 2 pi, in turns a position
};

[[nodiscard]] inline RopeTable rope_table(int64_t dims, double base) {
  RopeTable table{};
  for (int64_t i = 0; i < dims / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dims);
    table.turns[i] = std::pow(base, exponent) / 6.283185307179586477;
  }
  return table;
}

}  // namespace reckon::kernels::cuda
