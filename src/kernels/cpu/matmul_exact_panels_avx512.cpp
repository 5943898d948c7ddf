// hashed with "kernels/cpu/expert_matmul.cpp"
// hashed with "kernels/cpu/expert_swiglu_avx2.cpp"
// Exact matmuls over panels with AVX-512 (F, BW, VL, VNNI), in the canonical order
// (canonical_order.h): the bits of the kernels that read rows.
//
// A panel has its weight rows side by side in the lanes of registers, so that nothing is
// transposed: a group of 32 codes of 16 rows of q4_1 is 4 loads, 12 instructions to part nibbles
// and 16 vpdpbusd for an activation row. Codes of activations are cut into signed high and unsigned
// low bytes as in matmul_exact_avx512.cpp. Codes of up to 7 bits are the same signed and unsigned,
// so that an offset of theirs (8, 32) is paid for by the sum of the activation codes alone.
//
// A task takes a band of panels and streams its weights once from memory: all activation rows pass
// over it, 8 at a time, while it is in the cache.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/matmul_codes_avx512.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_exact_panels_avx512.hash.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/panel_formats_avx512.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 8;
constexpr int64_t kPanelsOfBand = 4;
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

// A panel x kRows activation rows; out[r] holds 16 outputs.
template <typename Format, int kRows>
void panel_dots(const typename Format::Block* blocks, const PlaneGroup* groups, int64_t row_groups,
                __m512* out) {
  constexpr bool kTwo = Format::kTogether >= 2;
  constexpr bool kFour = Format::kTogether == 4;
  __m512 totals[kRows];
  for (int r = 0; r < kRows; ++r) totals[r] = _mm512_setzero_ps();
  for (int64_t first = 0; first < row_groups; first += kSegmentGroups) {
    const int64_t end = smaller(first + kSegmentGroups, row_groups);
    __m512 sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
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

// Task: a band of panels x all activation rows.
template <typename Format>
void multiply_band(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t end = smaller((task + 1) * job.band, divide_up(job.args->n, kPanelLanes));
  for (int64_t r = 0; r < job.args->rows; r += kRowsAtOnce) {
    const MultiplyPanel multiply =
        multiply_panel_of<Format>(smaller(kRowsAtOnce, job.args->rows - r));
    for (int64_t panel = task * job.band; panel < end; ++panel) multiply(job, panel, r);
  }
}

template <typename Format>
MatmulWork plan_format(Job& job, int threads) {
  const int64_t panels = divide_up(job.args->n, kPanelLanes);
  job.band =
      job.args->rows <= kRowsAtOnce ? streamed_band(panels, job.parts, threads) : kPanelsOfBand;
  return {quantise_row<Format>, job.args->rows, multiply_band<Format>, divide_up(panels, job.band)};
}

MatmulWork plan(Job& job, int threads) {
  job.groups = activation_groups(job.args->weight_type, job.args->k);
  switch (job.args->weight_type) {
    case DType::kQ4_0:
      return plan_format<PanelsQ4_0>(job, threads);
    case DType::kQ4_1:
      return plan_format<PanelsQ4_1>(job, threads);
    case DType::kQ8_0:
      return plan_format<PanelsQ8_0>(job, threads);
    case DType::kP4:
      return plan_format<PanelsP4>(job, threads);
    case DType::kP8:
      return plan_format<PanelsP8>(job, threads);
    case DType::kQ4_K:
      return plan_format<PanelsQ4_K>(job, threads);
    case DType::kQ6_K:
      return plan_format<PanelsQ6_K>(job, threads);
    default:
      return {};  // the table does not support it
  }
}

constexpr ExpertKernel kExperts{ActivationLayout::kPanels, plan, swiglu_columns_avx2};

}  // namespace

void matmul_exact_panels_avx512(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactPanelsAvx512, kSourceHash, args);
  if (args.rows == 0) return;
  const uint64_t bytes = panel_matmul_scratch(args.weight_type, args.rows, args.k);
  Job job{};
  job.args = &args;
  job.activations = static_cast<char*>(scratch(context, bytes));
  run(context, job, plan);
}

void expert_swiglu_exact_panels_avx512(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kExactPanelsAvx512, kSourceHash, args);
  run_expert_swiglu(args, context, kExperts);
}

void expert_combine_exact_panels_avx512(const ExpertMatmulCombineArgs& args,
                                        KernelContext& context) {
  stamp(context, kExactPanelsAvx512, kSourceHash, args);
  run_expert_combine(args, context, kExperts);
}

const char* matmul_exact_panels_avx512_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
