// The sum of squares in the order of norm.h and what follows from it, for files compiled for AVX2
// and FMA only. The namespace has no name so that nothing in it can be shared with code for another
// instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kNormLanes = 16;

inline void add_squares(const float* x, __m256d (&lanes)[4]) {
  for (int j = 0; j < 4; ++j) {
    const __m256d values = _mm256_cvtps_pd(_mm_loadu_ps(x + 4 * j));
    lanes[j] = _mm256_fmadd_pd(values, values, lanes[j]);
  }
}

inline double sum_of_squares(const float* x, int64_t k) {
  __m256d lanes[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                      _mm256_setzero_pd()};
  int64_t i = 0;
  for (; i + kNormLanes <= k; i += kNormLanes) add_squares(x + i, lanes);
  if (i < k) {
    float rest[kNormLanes] = {};
    __builtin_memcpy(rest, x + i, static_cast<uint64_t>(k - i) * sizeof(float));
    add_squares(rest, lanes);
  }
  const __m256d fours =
      _mm256_add_pd(_mm256_add_pd(lanes[0], lanes[2]), _mm256_add_pd(lanes[1], lanes[3]));
  const __m128d twos = _mm_add_pd(_mm256_castpd256_pd128(fours), _mm256_extractf128_pd(fours, 1));
  return _mm_cvtsd_f64(_mm_add_sd(twos, _mm_unpackhi_pd(twos, twos)));
}

// What the row is multiplied by, in every lane.
inline __m256 norm_scale(const float* x, int64_t k, float epsilon) {
  const double mean = sum_of_squares(x, k) / static_cast<double>(k);
  const __m128d radicand = _mm_set_sd(mean + static_cast<double>(epsilon));
  const double root = _mm_cvtsd_f64(_mm_sqrt_sd(radicand, radicand));
  return _mm256_set1_ps(static_cast<float>(1.0 / root));
}

}  // namespace
}  // namespace reckon::kernels::cpu
