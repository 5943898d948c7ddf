// The walk of the gated activations over their rows, for files compiled for AVX2 and FMA only.
//
// An element's result depends on its value only: the last, partial vector goes through the same
// instructions under a mask.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/exp_avx2.h"
#include "kernels/kernel.h"

namespace reckon::kernels::cpu {
namespace {

// out = kFunction(gate, up), element by element.
template <__m256 (*kFunction)(__m256, __m256)>
void gated_columns(const float* gate, const float* up, float* out, int64_t k) {
  int64_t i = 0;
  for (; i + 8 <= k; i += 8) {
    _mm256_storeu_ps(out + i, kFunction(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i)));
  }
  if (i < k) {
    const __m256i mask = first_lanes(static_cast<int>(k - i));
    _mm256_maskstore_ps(
        out + i, mask,
        kFunction(_mm256_maskload_ps(gate + i, mask), _mm256_maskload_ps(up + i, mask)));
  }
}

// Task: a row of SwigluArgs or GegluArgs by kFunction(8 gates, 8 ups).
template <typename Args, __m256 (*kFunction)(__m256, __m256)>
void gated_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const Args*>(argument);
  const int64_t first = row * args.k;
  gated_columns<kFunction>(args.gate + first, args.up + first, args.out + first, args.k);
}

}  // namespace
}  // namespace reckon::kernels::cpu
