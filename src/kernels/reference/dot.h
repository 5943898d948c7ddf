// The dot product of reference kernels that have no rows to take side by side: float32, eight
// interleaved sums (element i goes to sum i mod 8), added as ((0+1)+(2+3))+((4+5)+(6+7)), so that
// compilers can vectorise it in the stated order.
#pragma once

#include <cstdint>

namespace reckon::kernels::reference {

static inline float dot(const float* a, const float* b, int64_t n) {
  constexpr int64_t kLanes = 8;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) sums[l] += a[i + l] * b[i + l];
  }
  for (; i < n; ++i) sums[i % kLanes] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace reckon::kernels::reference
