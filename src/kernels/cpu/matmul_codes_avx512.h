// Activations as int16 codes (canonical_order.h), cut into planes of bytes.
//
// For the AVX-512 matmuls alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

// What takes the offset of weight codes away again: codes c of the halves of a group, h their high
// bytes.
template <typename Format>
void set_starts(__m512i c0, __m512i c1, __m512i h0, __m512i h1, PlaneGroup& out) {
  out.starts[0] = out.starts[1] = 0;
  if (Format::kOffset == 0) return;
  const __m512i first = Format::kNarrow ? c0 : h0;
  const __m512i second = Format::kNarrow ? c1 : h1;
  if (Format::kHalves == 2) {
    out.starts[0] = -Format::kOffset * _mm512_reduce_add_epi32(first);
    out.starts[1] = -Format::kOffset * _mm512_reduce_add_epi32(second);
  } else {
    out.starts[0] = -Format::kOffset * _mm512_reduce_add_epi32(_mm512_add_epi32(first, second));
  }
}

// The first `count` of the group's activations are at x, the others are zeros.
template <typename Format>
void quantise(const float* x, int64_t count, PlaneGroup& out) {
  const __m512 v0 = _mm512_maskz_loadu_ps(first_lanes(count), x);
  const __m512 v1 = _mm512_maskz_loadu_ps(first_lanes(count - 16), x + 16);
  const __m512i mask = _mm512_set1_epi32(kMagnitudeMask);
  const int32_t magnitude =
      _mm512_reduce_max_epi32(_mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(v0), mask),
                                               _mm512_and_si512(_mm512_castps_si512(v1), mask)));
  __m512i c0 = _mm512_setzero_si512();
  __m512i c1 = _mm512_setzero_si512();
  out.scale = out.sum = 0;
  if (magnitude >= kInfinityBits) {
    out.scale = out.sum = __builtin_nanf("");
  } else if (magnitude >= kSmallestMagnitude) {
    float largest;
    __builtin_memcpy(&largest, &magnitude, sizeof largest);
    const __m512 inverse = _mm512_set1_ps(Format::kLargest / largest);
    c0 = _mm512_cvtps_epi32(_mm512_mul_ps(v0, inverse));
    c1 = _mm512_cvtps_epi32(_mm512_mul_ps(v1, inverse));
    out.scale = largest / Format::kLargest;
    if (Format::kHasMinimum) {
      out.sum = out.scale * static_cast<float>(_mm512_reduce_add_epi32(_mm512_add_epi32(c0, c1)));
    }
  }
  const __m512i h0 = _mm512_srai_epi32(c0, 8);
  const __m512i h1 = _mm512_srai_epi32(c1, 8);
  set_starts<Format>(c0, c1, h0, h1, out);
  auto* high = reinterpret_cast<__m128i*>(out.high);
  auto* low = reinterpret_cast<__m128i*>(out.low);
  _mm_storeu_si128(high, _mm512_cvtepi32_epi8(h0));
  _mm_storeu_si128(high + 1, _mm512_cvtepi32_epi8(h1));
  _mm_storeu_si128(low, _mm512_cvtepi32_epi8(c0));
  _mm_storeu_si128(low + 1, _mm512_cvtepi32_epi8(c1));
}

// Task: one activation row.
template <typename Format>
void quantise_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t k = job.args->k;
  const float* x = activation_row(job, row);
  auto* groups = reinterpret_cast<PlaneGroup*>(job.activations) + row * job.groups;
  for (int64_t g = 0; g < job.groups; ++g)
    quantise<Format>(x + g * kGroup, k - g * kGroup, groups[g]);
}

}  // namespace
}  // namespace reckon::kernels::cpu
