// The sum of 8 lanes in the order that exact kernels fold them, for files compiled for AVX2 only
// (hence `static`: no copy is shared).
#pragma once

#include <immintrin.h>

namespace reckon::kernels::cpu {

// ((0+1)+(2+3))+((4+5)+(6+7))
static inline float fold(__m256 lanes) {
  const __m256 pairs = _mm256_hadd_ps(lanes, lanes);
  const __m256 fours = _mm256_hadd_ps(pairs, pairs);
  return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1)));
}

}  // namespace reckon::kernels::cpu
