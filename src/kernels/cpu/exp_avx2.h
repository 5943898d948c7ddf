// e^x in 8 lanes, for files compiled for AVX2 and FMA only (hence `static`: no copy is shared).
//
// x = n ln 2 + r with |r| <= ln 2 / 2, e^r = 1 + r + r^2 q(r), q a polynomial of degree 4 fitted
// for the smallest largest relative error (3e-9 before rounding): within 2 units in the last place.
// Below -86 the result is 0, above 88 it is e^88; NaN stays NaN. Lanes do not influence each other.
#pragma once

#include <immintrin.h>

namespace reckon::kernels::cpu {

static inline __m256 exp8(__m256 x) {
  const __m256 lowest = _mm256_set1_ps(-86.0F);
  const __m256 tiny = _mm256_cmp_ps(x, lowest, _CMP_LT_OQ);
  // The bound comes first: min and max return their second operand where one is NaN.
  x = _mm256_min_ps(_mm256_set1_ps(88.0F), _mm256_max_ps(lowest, x));
  const __m256i n = _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(0x1.715476p+0F)));
  const __m256 whole = _mm256_cvtepi32_ps(n);
  // ln 2 in two parts; the first has few enough bits for whole * ln 2 to be exact.
  __m256 r = _mm256_fnmadd_ps(whole, _mm256_set1_ps(0x1.63p-1F), x);
  r = _mm256_fnmadd_ps(whole, _mm256_set1_ps(-0x1.bd0106p-13F), r);
  __m256 q = _mm256_set1_ps(0x1.6a2352p-10F);
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.123a6cp-7F));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.5558f4p-5F));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.555490p-3F));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0x1.fffffcp-2F));
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
