// The AVX-512 matmul of integer formats: 16 weight rows straight from the file against a few
// activation rows, and tiles of unpacked weights against many.
//
// For matmul_exact_avx512.cpp alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_codes_avx512.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_formats_avx512.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

__m512i broadcast(const void* p) {
  return _mm512_set1_epi32(load_word(p));
}

// Unsigned codes (weight + kOffset) as signed weights.
template <typename Format>
__m512i signed_codes(__m512i codes) {
  if (Format::kOffset == 0) return codes;
  return _mm512_sub_epi8(codes, _mm512_set1_epi8(static_cast<char>(Format::kOffset)));
}

// Dots of one group, lane j of dots[p][r] that of weight row j of panel p with activation row r.
// An activation code is 256 * high + low, high signed and low unsigned; vpdpbusd multiplies
// unsigned with signed bytes. So the high bytes go with the codes as unsigned bytes and the low
// ones with the weights as signed bytes, in one accumulator that is shifted in between. Where codes
// have an offset, it starts at what takes the offset away again.
template <typename Format, int kPanels, int kRows, typename Codes>
[[gnu::always_inline]] inline void group_dots(const PlaneGroup* group, int64_t row_groups,
                                              const Codes& codes, __m512i (*dots)[kRows]) {
  // Each sum is cut into this many chains of additions, for high and for low bytes: vpdpbusd takes
  // 5 cycles, and the scheduler fills up while a single row waits for chains of 8. Chains of 4 made
  // it 1.14 times as fast for q4_1 (2048x2048); p4 and q8_0 did not change beyond the noise.
  constexpr int kChains = kPanels * kRows == 1 ? 2 : 1;
  constexpr bool kTwoSums = kPanels * kRows < 4;
  __m512i sums[kChains][kPanels][kRows];
  for (int r = 0; r < kRows; ++r) {
    const __m512i start =
        Format::kOffset == 0 ? _mm512_setzero_si512() : broadcast(&group[r * row_groups].starts[0]);
    for (int p = 0; p < kPanels; ++p) {
      sums[0][p][r] = start;
      if (kChains == 2) sums[kChains - 1][p][r] = _mm512_setzero_si512();
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kWords; ++i) {
    __m512i w[kPanels];
    for (int p = 0; p < kPanels; ++p) w[p] = codes(p, i);
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = broadcast(group[r * row_groups].high + 4 * i);
      for (int p = 0; p < kPanels; ++p) {
        __m512i& sum = sums[i % kChains][p][r];
        sum = _mm512_dpbusd_epi32(sum, w[p], x);
      }
    }
  }
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) {
      __m512i sum = sums[0][p][r];
      if (kChains == 2) sum = _mm512_add_epi32(sum, sums[kChains - 1][p][r]);
      dots[p][r] = _mm512_slli_epi32(sum, 8);
      for (int c = 0; c < kChains; ++c) {
        sums[c][p][r] = kTwoSums ? _mm512_setzero_si512() : dots[p][r];
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kWords; ++i) {
    __m512i w[kPanels];
    for (int p = 0; p < kPanels; ++p) w[p] = signed_codes<Format>(codes(p, i));
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = broadcast(group[r * row_groups].low + 4 * i);
      for (int p = 0; p < kPanels; ++p) {
        __m512i& sum = sums[i % kChains][p][r];
        sum = _mm512_dpbusd_epi32(sum, x, w[p]);
      }
    }
  }
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) {
      __m512i sum = sums[0][p][r];
      if (kChains == 2) sum = _mm512_add_epi32(sum, sums[kChains - 1][p][r]);
      dots[p][r] = kTwoSums ? _mm512_add_epi32(dots[p][r], sum) : sum;
    }
  }
}

// sum, with the group's dots added in the canonical order.
template <typename Format>
__m512 add_dots(__m512i dots, const PlaneGroup& group, __m512 scale, __m512 minimum, __m512 sum) {
  sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), _mm512_mul_ps(scale, _mm512_set1_ps(group.scale)),
                        sum);
  if (Format::kHasMinimum) sum = _mm512_fmadd_ps(minimum, _mm512_set1_ps(group.sum), sum);
  return sum;
}

// Group kPart of one block of 16 weight rows, into the sums of kRows activation rows.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void add_group(const char* block, int64_t stride,
                                             const PlaneGroup* group, int64_t row_groups,
                                             __m512i* raw, __m512& scale, __m512& minimum,
                                             __m512* sums) {
  __m512i words[kWords];
  Format::template load_block<kPart>(block, stride, raw);
  Format::template codes<kPart>(raw, words);
  __m512i dots[1][kRows];
  group_dots<Format, 1, kRows>(
      group, row_groups, [&](int /*panel*/, int i) { return words[i]; }, dots);
  if (kPart == 0) Format::load_heads(block, stride, scale, minimum);
  for (int r = 0; r < kRows; ++r) {
    sums[r] = add_dots<Format>(dots[0][r], group[r * row_groups], scale, minimum, sums[r]);
  }
}

// 16 weight rows, kRows activation rows (of `row_groups` groups each); out[r] holds 16 outputs.
template <typename Format, int kRows>
void direct_dots(const char* rows, int64_t stride, const PlaneGroup* groups, int64_t row_groups,
                 __m512* out) {
  constexpr int64_t kAhead = kPanelLanes * Format::kBytes;
  __m512 totals[kRows];
  for (int r = 0; r < kRows; ++r) totals[r] = _mm512_setzero_ps();
  for (int64_t first = 0; first < row_groups; first += kSegmentGroups) {
    const int64_t end = smaller(first + kSegmentGroups, row_groups);
    __m512 sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
    for (int64_t g = first; g < end; g += Format::kGroups) {
      const int64_t b = g / Format::kGroups;
      const char* block = rows + b * Format::kBytes;
      prefetch(rows + kPanelLanes * stride + b * kAhead, kAhead);
      __m512 scale;
      __m512 minimum;
      __m512i raw[kWords];
      add_group<Format, 0, kRows>(block, stride, groups + g, row_groups, raw, scale, minimum, sums);
      if (Format::kGroups == 2) {
        add_group<Format, Format::kGroups - 1, kRows>(block, stride, groups + g + 1, row_groups,
                                                      raw, scale, minimum, sums);
      }
    }
    for (int r = 0; r < kRows; ++r) totals[r] = _mm512_add_ps(totals[r], sums[r]);
  }
  for (int r = 0; r < kRows; ++r) out[r] = totals[r];
}

// 16 weight rows from `first` of a matrix: where fewer are left, those before them are taken once
// more and not stored.
struct Window {
  int64_t start;
  __mmask16 stored;
};

Window window_at(int64_t first, int64_t n) {
  const int64_t start = smaller(first, n - kPanelLanes);
  return {start, static_cast<__mmask16>(0xffff << (first - start))};
}

// Weight rows from window.start on x kRows activation rows from `row`.
template <typename Format, int kRows>
void multiply_window(const Job& job, const Window& window, int64_t stride, int64_t row) {
  const MatmulArgs& args = *job.args;
  const auto* groups = reinterpret_cast<const PlaneGroup*>(job.activations) + row * job.groups;
  __m512 outputs[kRows];
  direct_dots<Format, kRows>(weight_row(job, window.start), stride, groups, job.groups, outputs);
  for (int r = 0; r < kRows; ++r) {
    _mm512_mask_storeu_ps(args.out + (row + r) * args.n + window.start, window.stored, outputs[r]);
  }
}

using MultiplyWindow = void (*)(const Job&, const Window&, int64_t stride, int64_t row);

template <typename Format>
MultiplyWindow multiply_window_of(int64_t rows) {
  static constexpr MultiplyWindow kFunctions[kDirectRows] = {
      multiply_window<Format, 1>, multiply_window<Format, 2>, multiply_window<Format, 3>,
      multiply_window<Format, 4>, multiply_window<Format, 5>, multiply_window<Format, 6>,
      multiply_window<Format, 7>, multiply_window<Format, 8>};
  return kFunctions[rows - 1];
}

// Task: 16 weight rows, up to kDirectRows activation rows.
template <typename Format>
void multiply_direct(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const Window window = window_at(task * kPanelLanes, job.args->n);
  multiply_window_of<Format>(job.args->rows)(job, window, job.row_stride, 0);
}

// Task: one weight row of a matrix of fewer than 16, which stands for all 16 lanes.
template <typename Format>
void multiply_narrow(void* argument, int64_t j, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t rows = job.args->rows;
  for (int64_t r = 0; r < rows; r += kDirectRows) {
    multiply_window_of<Format>(smaller(kDirectRows, rows - r))(job, {j, 1}, 0, r);
  }
}

// kPanels x kRows: 2 x 8 makes 16 accumulators, enough for two vpdpbusd a cycle of latency 5, on 10
// loads for 16 of them.
template <typename Format, int kPanels, int kRows>
void panel_dots(const PlanePanel* panels, const PlaneGroup* groups, int64_t row_groups,
                __m512 (*totals)[kRows]) {
  for (int p = 0; p < kPanels; ++p) {
    for (int r = 0; r < kRows; ++r) totals[p][r] = _mm512_setzero_ps();
  }
  for (int64_t first = 0; first < row_groups; first += kSegmentGroups) {
    const int64_t end = smaller(first + kSegmentGroups, row_groups);
    __m512 sums[kPanels][kRows];
    for (int p = 0; p < kPanels; ++p) {
      for (int r = 0; r < kRows; ++r) sums[p][r] = _mm512_setzero_ps();
    }
    for (int64_t g = first; g < end; ++g) {
      const PlanePanel* panel = panels + g;
      __m512i dots[kPanels][kRows];
      group_dots<Format, kPanels, kRows>(
          groups + g, row_groups,
          [&](int p, int i) { return _mm512_load_si512(panel[p * row_groups].codes[i]); }, dots);
      for (int p = 0; p < kPanels; ++p) {
        const __m512 scale = _mm512_load_ps(panel[p * row_groups].scales);
        const __m512 minimum = _mm512_load_ps(panel[p * row_groups].minima);
        for (int r = 0; r < kRows; ++r) {
          sums[p][r] =
              add_dots<Format>(dots[p][r], groups[r * row_groups + g], scale, minimum, sums[p][r]);
        }
      }
    }
    for (int p = 0; p < kPanels; ++p) {
      for (int r = 0; r < kRows; ++r) totals[p][r] = _mm512_add_ps(totals[p][r], sums[p][r]);
    }
  }
}

// The tiled path of integer formats: as matmul_exact_avx512.cpp wants it. A tile has one or two
// panels.
template <typename Format>
struct IntegerTiles {
  static constexpr int64_t kWeights = kPlaneTile;

  static int64_t tile_bytes(const Job& job) {
    return kPlaneTile / kPanelLanes * job.groups * static_cast<int64_t>(sizeof(PlanePanel));
  }

  static void unpack(const Job& job, int64_t first_row, int64_t rows, char* memory) {
    auto* panel = reinterpret_cast<PlanePanel*>(memory);
    for (int64_t j = 0; j < rows; j += kPanelLanes, panel += job.groups) {
      const char* row = weight_row(job, window_at(first_row + j, job.args->n).start);
      for (int64_t g = 0; g < job.groups; g += Format::kGroups) {
        const char* block = row + g / Format::kGroups * Format::kBytes;
        __m512i raw[kWords];
        __m512 scale;
        __m512 minimum;
        Format::load_heads(block, job.row_stride, scale, minimum);
        unpack_group<0>(block, job.row_stride, raw, scale, minimum, panel[g]);
        if (Format::kGroups == 2) {
          unpack_group<Format::kGroups - 1>(block, job.row_stride, raw, scale, minimum,
                                            panel[g + 1]);
        }
      }
    }
  }

  // Activation rows go by 8, but never fewer than 4 at a time where there are as many.
  static void multiply(const Job& job, const char* memory, int64_t first_weight, int64_t weights,
                       int64_t first_row, int64_t rows) {
    for (int64_t r = 0; r < rows;) {
      const int64_t left = rows - r;
      const int64_t taken = left > 8 && left < 12 ? left - left / 2 : smaller(left, 8);
      if (weights > kPanelLanes) {
        multiply_rows<2>(taken, job, memory, first_weight, first_row + r);
      } else {
        multiply_rows<1>(taken, job, memory, first_weight, first_row + r);
      }
      r += taken;
    }
  }

 private:
  template <int kPart>
  static void unpack_group(const char* block, int64_t stride, __m512i* raw, __m512 scale,
                           __m512 minimum, PlanePanel& out) {
    __m512i words[kWords];
    Format::template load_block<kPart>(block, stride, raw);
    Format::template codes<kPart>(raw, words);
    for (int i = 0; i < kWords; ++i) _mm512_store_si512(out.codes[i], words[i]);
    _mm512_store_ps(out.scales, scale);
    _mm512_store_ps(out.minima, minimum);
  }

  template <int kPanels, int kRows>
  static void multiply_panels(const Job& job, const char* memory, int64_t first_weight,
                              int64_t row) {
    const auto* panels = reinterpret_cast<const PlanePanel*>(memory);
    const auto* groups = reinterpret_cast<const PlaneGroup*>(job.activations) + row * job.groups;
    const int64_t n = job.args->n;
    __m512 totals[kPanels][kRows];
    panel_dots<Format, kPanels, kRows>(panels, groups, job.groups, totals);
    for (int p = 0; p < kPanels; ++p) {
      const Window window = window_at(first_weight + p * kPanelLanes, n);
      for (int r = 0; r < kRows; ++r) {
        _mm512_mask_storeu_ps(job.args->out + (row + r) * n + window.start, window.stored,
                              totals[p][r]);
      }
    }
  }

  template <int kPanels>
  static void multiply_rows(int64_t rows, const Job& job, const char* memory, int64_t first_weight,
                            int64_t row) {
    using Multiply = void (*)(const Job&, const char*, int64_t, int64_t);
    static constexpr Multiply kFunctions[8] = {
        multiply_panels<kPanels, 1>, multiply_panels<kPanels, 2>, multiply_panels<kPanels, 3>,
        multiply_panels<kPanels, 4>, multiply_panels<kPanels, 5>, multiply_panels<kPanels, 6>,
        multiply_panels<kPanels, 7>, multiply_panels<kPanels, 8>};
    kFunctions[rows - 1](job, memory, first_weight, row);
  }
};

}  // namespace
}  // namespace reckon::kernels::cpu
