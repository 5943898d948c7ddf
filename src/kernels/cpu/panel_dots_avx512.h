// Dots of panels with activation rows in the canonical order (canonical_order.h): what the exact
// matmuls over panels with AVX-512 share.
//
// A panel has its weight rows side by side in the lanes of registers, so that nothing is
// transposed: a group of 32 codes of 16 rows of q4_1 is 4 loads, 12 instructions to part nibbles
// and 16 vpdpbusd for an activation row. Codes of activations are cut into signed high and unsigned
// low bytes as in matmul_exact_avx512.cpp. Codes of up to 7 bits are the same signed and unsigned,
// so that an offset of theirs (8, 32) is paid for by the sum of the activation codes alone.
//
// For files compiled for AVX-512 alone; the namespace has no name so that nothing in it can be
// shared with code for another instruction set. Plain types only.
#pragma once

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_codes_avx512.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/panel_formats_avx512.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 8;
// How far ahead of the block that is multiplied weights are fetched: hardware prefetchers stop at
// every page of 4 KB.
constexpr int64_t kFetchAhead = 3072;

__m512i broadcast(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm512_set1_epi32(word);
}

// What sums of high or low bytes start with, to take the codes' offset away again.
template <typename Format>
__m512i start(const PlaneGroup& group, bool is_low, int half) {
  if (Format::kOffset == 0 || is_low != Format::kNarrow) return _mm512_setzero_si512();
  if (half == 1 && Format::kHalves == 1) return _mm512_setzero_si512();
  return broadcast(&group.starts[half]);
}

// Group kPart into the sums of kRows activation rows, `row_groups` apart. The two halves of the
// group have sums of their own: shorter chains of dependent additions, and q6_k's own scales.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void add_group(const typename Format::Block& block,
                                             const PanelHead& head, int quad,
                                             const PlaneGroup* group, int64_t row_groups,
                                             __m512* sums) {
  const PanelScales scales = Format::template scales<kPart>(block, head, quad);
  __m512i dots[kRows];
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m512i high[kRows];
    __m512i low[kRows];
    for (int r = 0; r < kRows; ++r) {
      high[r] = start<Format>(group[r * row_groups], false, half);
      low[r] = start<Format>(group[r * row_groups], true, half);
    }
#pragma GCC unroll 4
    for (int i = 4 * half; i < 4 * half + 4; ++i) {
      const __m512i codes = Format::template codes<kPart>(block, quad, i);
      const __m512i weights =
          Format::kNarrow
              ? codes
              : _mm512_xor_si512(codes, _mm512_set1_epi8(static_cast<char>(Format::kOffset)));
      for (int r = 0; r < kRows; ++r) {
        const PlaneGroup& x = group[r * row_groups];
        high[r] = _mm512_dpbusd_epi32(high[r], codes, broadcast(x.high + 4 * i));
        low[r] = _mm512_dpbusd_epi32(low[r], broadcast(x.low + 4 * i), weights);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      __m512i dot = _mm512_add_epi32(_mm512_slli_epi32(high[r], 8), low[r]);
      if (Format::kHalves == 2) dot = _mm512_mullo_epi32(dot, scales.parts[half]);
      dots[r] = half == 0 ? dot : _mm512_add_epi32(dots[r], dot);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const PlaneGroup& x = group[r * row_groups];
    sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r]),
                              _mm512_mul_ps(scales.scale, _mm512_set1_ps(x.scale)), sums[r]);
    if (Format::kHasMinimum) {
      sums[r] = _mm512_fmadd_ps(scales.minimum, _mm512_set1_ps(x.sum), sums[r]);
    }
  }
}

// Groups first ... end - 1 of a panel x kRows activation rows, added to sums[r]: 16 outputs each.
template <typename Format, int kRows>
[[gnu::always_inline]] inline void add_segment(const typename Format::Block* blocks,
                                               const PlaneGroup* groups, int64_t row_groups,
                                               int64_t first, int64_t end, __m512* sums) {
  constexpr bool kTwo = Format::kTogether >= 2;
  constexpr bool kFour = Format::kTogether == 4;
  for (int64_t g = first; g < end; g += Format::kGroups) {
    const typename Format::Block& block = blocks[g / Format::kGroups];
    prefetch(reinterpret_cast<const char*>(&block) + kFetchAhead, sizeof block);
    const PanelHead head = Format::head(block);
    for (int quad = 0; quad < Format::kGroups / Format::kTogether; ++quad) {
      const PlaneGroup* group = groups + g + quad * Format::kTogether;
      add_group<Format, 0, kRows>(block, head, quad, group, row_groups, sums);
      if (kTwo) {
        add_group<Format, kTwo ? 1 : 0, kRows>(block, head, quad, group + 1, row_groups, sums);
      }
      if (kFour) {
        add_group<Format, kFour ? 2 : 0, kRows>(block, head, quad, group + 2, row_groups, sums);
        add_group<Format, kFour ? 3 : 0, kRows>(block, head, quad, group + 3, row_groups, sums);
      }
    }
  }
}

// A panel x kRows activation rows; out[r] holds 16 outputs.
template <typename Format, int kRows>
void panel_dots(const typename Format::Block* blocks, const PlaneGroup* groups, int64_t row_groups,
                __m512* out) {
  __m512 totals[kRows];
  for (int r = 0; r < kRows; ++r) totals[r] = _mm512_setzero_ps();
  for (int64_t first = 0; first < row_groups; first += kSegmentGroups) {
    const int64_t end = smaller(first + kSegmentGroups, row_groups);
    __m512 sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
    add_segment<Format, kRows>(blocks, groups, row_groups, first, end, sums);
    for (int r = 0; r < kRows; ++r) totals[r] = _mm512_add_ps(totals[r], sums[r]);
  }
  for (int r = 0; r < kRows; ++r) out[r] = totals[r];
}

template <typename Format>
const typename Format::Block* panel_at(const Job& job, int64_t panel) {
  return static_cast<const typename Format::Block*>(job.args->panels) +
         panel * (job.groups / Format::kGroups);
}

template <typename Format, int kRows>
void multiply_panel(const Job& job, int64_t panel, int64_t row) {
  const MatmulArgs& args = *job.args;
  const auto* groups = reinterpret_cast<const PlaneGroup*>(job.activations) + row * job.groups;
  __m512 outputs[kRows];
  panel_dots<Format, kRows>(panel_at<Format>(job, panel), groups, job.groups, outputs);
  const int64_t first = panel * kPanelLanes;
  const __mmask16 stored = first_lanes(args.n - first);
  for (int r = 0; r < kRows; ++r) {
    _mm512_mask_storeu_ps(args.out + (row + r) * args.n + first, stored, outputs[r]);
  }
}

using MultiplyPanel = void (*)(const Job&, int64_t panel, int64_t row);

template <typename Format>
MultiplyPanel multiply_panel_of(int64_t rows) {
  static constexpr MultiplyPanel kFunctions[kRowsAtOnce] = {
      multiply_panel<Format, 1>, multiply_panel<Format, 2>, multiply_panel<Format, 3>,
      multiply_panel<Format, 4>, multiply_panel<Format, 5>, multiply_panel<Format, 6>,
      multiply_panel<Format, 7>, multiply_panel<Format, 8>};
  return kFunctions[rows - 1];
}

}  // namespace
}  // namespace reckon::kernels::cpu
