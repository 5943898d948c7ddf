// Vectors of 8 values that may end before the eighth, for files compiled for AVX2 and FMA only. The
// namespace has no name so that nothing in it can be shared with code for another instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/cpu/exp_avx2.h"

namespace reckon::kernels::cpu {
namespace {

// The first `count` of 8 values where there are fewer, with zeros behind them.
inline __m256 load8(const float* p, int64_t count) {
  if (count >= 8) return _mm256_loadu_ps(p);
  return _mm256_maskload_ps(p, first_lanes(static_cast<int>(count)));
}

inline void store8(float* p, int64_t count, __m256 values) {
  if (count >= 8) return _mm256_storeu_ps(p, values);
  _mm256_maskstore_ps(p, first_lanes(static_cast<int>(count)), values);
}

// out = x + y; out may be either.
inline void add_values(const float* x, const float* y, float* out, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) {
    const int64_t left = count - i;
    store8(out + i, left, _mm256_add_ps(load8(x + i, left), load8(y + i, left)));
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
