// e^x in 16 lanes, for files compiled for AVX-512 only (hence `static`: no copy is shared): the
// numbers of exp_polynomial.h.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/exp_polynomial.h"

namespace reckon::kernels::cpu {

static inline __m512 exp16(__m512 x) {
  const __m512 lowest = _mm512_set1_ps(exp_polynomial::kLowest);
  const __mmask16 counts = _mm512_cmp_ps_mask(x, lowest, _CMP_NLT_UQ);
  // The bound comes first: min and max return their second operand where one is NaN.
  x = _mm512_min_ps(_mm512_set1_ps(exp_polynomial::kHighest), _mm512_max_ps(lowest, x));
  const __m512i n = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(exp_polynomial::kPerLn2)));
  const __m512 whole = _mm512_cvtepi32_ps(n);
  __m512 r = _mm512_fnmadd_ps(whole, _mm512_set1_ps(exp_polynomial::kLn2High), x);
  r = _mm512_fnmadd_ps(whole, _mm512_set1_ps(exp_polynomial::kLn2Low), r);
  __m512 q = _mm512_set1_ps(exp_polynomial::kQ[0]);
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(exp_polynomial::kQ[1]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(exp_polynomial::kQ[2]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(exp_polynomial::kQ[3]));
  q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(exp_polynomial::kQ[4]));
  const __m512 power =
      _mm512_fmadd_ps(_mm512_mul_ps(r, r), q, _mm512_add_ps(r, _mm512_set1_ps(1.0F)));
  const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(power), _mm512_slli_epi32(n, 23));
  return _mm512_maskz_mov_ps(counts, _mm512_castsi512_ps(bits));
}

}  // namespace reckon::kernels::cpu
