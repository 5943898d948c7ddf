// e^x in 8 lanes, for files compiled for AVX2 and FMA only (hence `static`: no copy is shared):
// the numbers of exp_polynomial.h. Lanes do not influence each other.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/exp_polynomial.h"

namespace reckon::kernels::cpu {

static inline __m256 exp8(__m256 x) {
  const __m256 lowest = _mm256_set1_ps(exp_polynomial::kLowest);
  const __m256 tiny = _mm256_cmp_ps(x, lowest, _CMP_LT_OQ);
  // The bound comes first: min and max return their second operand where one is NaN.
  x = _mm256_min_ps(_mm256_set1_ps(exp_polynomial::kHighest), _mm256_max_ps(lowest, x));
  const __m256i n = _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(exp_polynomial::kPerLn2)));
  const __m256 whole = _mm256_cvtepi32_ps(n);
  __m256 r = _mm256_fnmadd_ps(whole, _mm256_set1_ps(exp_polynomial::kLn2High), x);
  r = _mm256_fnmadd_ps(whole, _mm256_set1_ps(exp_polynomial::kLn2Low), r);
  __m256 q = _mm256_set1_ps(exp_polynomial::kQ[0]);
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(exp_polynomial::kQ[1]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(exp_polynomial::kQ[2]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(exp_polynomial::kQ[3]));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(exp_polynomial::kQ[4]));
  const __m256 power =
      _mm256_fmadd_ps(_mm256_mul_ps(r, r), q, _mm256_add_ps(r, _mm256_set1_ps(1.0F)));
  // Times 2^n by way of the exponent bits, which stay in range by the bounds above.
  const __m256i bits = _mm256_add_epi32(_mm256_castps_si256(power), _mm256_slli_epi32(n, 23));
  return _mm256_andnot_ps(tiny, _mm256_castsi256_ps(bits));
}

// Lanes 0 ... count - 1 set, for masked loads and stores; count in 0 ... 8.
static inline __m256i first_lanes(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace reckon::kernels::cpu
