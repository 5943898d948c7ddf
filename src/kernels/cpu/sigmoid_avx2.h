// Sigmoids in 8 lanes, for files compiled for AVX2 and FMA only (hence `static`: no copy is
// shared); e^x by exp_avx2.h. Lanes do not influence each other.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/exp_avx2.h"

namespace reckon::kernels::cpu {

// x * sigmoid(gate)
static inline __m256 times_sigmoid8(__m256 x, __m256 gate) {
  const __m256 minus_gate = _mm256_xor_ps(gate, _mm256_set1_ps(-0.0F));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0F), exp8(minus_gate)));
}

static inline __m256 silu8(__m256 x) {
  return times_sigmoid8(x, x);
}

static inline __m256 swiglu8(__m256 gate, __m256 up) {
  return _mm256_mul_ps(silu8(gate), up);
}

}  // namespace reckon::kernels::cpu
