// hashed with "kernels/cpu/expert_matmul.cpp"
// hashed with "kernels/cpu/expert_swiglu_avx2.cpp"
// Exact matmuls over panels with AVX2, in the canonical order (canonical_order.h): the bits of the
// kernels that read rows, and those of matmul_exact_panels_avx512.cpp, whose layout of activations
// this shares: codes cut into signed high and unsigned low bytes.
//
// vpmaddubsw multiplies unsigned with signed bytes and adds pairs in 16 bits, with saturation;
// codes of up to 6 bits never reach it, and products of 4-bit codes are summed over 4 instructions
// before they are widened. Weight rows stand in lanes, 8 at a time, so that nothing is transposed
// and no sum is horizontal. q8_0 does not fit in this and goes by rows.
#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/matmul_codes_avx2.h"
#include "kernels/cpu/matmul_common_avx2.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_exact_panels_avx2.hash.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/panel_formats_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 2;
constexpr int kLanes = 8;
constexpr int64_t kFetchAhead = 3072;  // bytes, beyond the page where hardware prefetchers stop

inline __m256i broadcast(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm256_set1_epi32(word);
}

// Task: one activation row, as planes of bytes.
template <typename Format>
void quantise_planes(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const float* x = activation_row(job, row);
  auto* groups = reinterpret_cast<PlaneGroup*>(job.activations) + row * job.groups;
  const __m256i low_byte = _mm256_set1_epi16(0xff);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t g = 0; g < job.groups; ++g) {
    const Quantised q = quantise<Format>(x + g * kGroup);
    const __m256i high =
        _mm256_packs_epi16(_mm256_srai_epi16(q.low, 8), _mm256_srai_epi16(q.high, 8));
    const __m256i low =
        _mm256_packus_epi16(_mm256_and_si256(q.low, low_byte), _mm256_and_si256(q.high, low_byte));
    store(groups[g].high, _mm256_permute4x64_epi64(high, 0xd8));
    store(groups[g].low, _mm256_permute4x64_epi64(low, 0xd8));
    groups[g].scale = q.scale;
    groups[g].sum = q.sum;
    const int32_t first = -Format::kOffset * sum_lanes(_mm256_madd_epi16(q.low, ones));
    const int32_t second = -Format::kOffset * sum_lanes(_mm256_madd_epi16(q.high, ones));
    groups[g].starts[0] = Format::kHalves == 2 ? first : first + second;
    groups[g].starts[1] = Format::kHalves == 2 ? second : 0;
  }
}

// Words 4 * half ... of group kPart: dots with kRows activation rows, `row_groups` apart.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void half_dots(const typename Format::Block& block, int quad,
                                             int lane, int half, const PlaneGroup* group,
                                             int64_t row_groups, __m256i* dots) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i high[kRows];
  __m256i low[kRows];
  for (int r = 0; r < kRows; ++r) {
    high[r] = _mm256_setzero_si256();
    low[r] = broadcast(&group[r * row_groups].starts[half]);
  }
  for (int run = 4 * half; run < 4 * half + 4; run += Format::kRun) {
    __m256i high16[kRows];
    __m256i low16[kRows];
    for (int i = run; i < run + Format::kRun; ++i) {
      const __m256i codes = Format::template codes<kPart>(block, quad, lane, i);
      for (int r = 0; r < kRows; ++r) {
        const PlaneGroup& x = group[r * row_groups];
        const __m256i h = _mm256_maddubs_epi16(codes, broadcast(x.high + 4 * i));
        const __m256i l = _mm256_maddubs_epi16(broadcast(x.low + 4 * i), codes);
        high16[r] = i == run ? h : _mm256_add_epi16(high16[r], h);
        low16[r] = i == run ? l : _mm256_add_epi16(low16[r], l);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(high16[r], ones));
      low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(low16[r], ones));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    dots[r] = _mm256_add_epi32(_mm256_slli_epi32(high[r], 8), low[r]);
  }
}

// Group kPart of 8 weight rows into the sums of kRows activation rows.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void add_group(const typename Format::Block& block, int quad,
                                             int lane, const PlaneGroup* group, int64_t row_groups,
                                             __m256* sums) {
  const PanelScales scales = Format::template scales<kPart>(block, quad, lane);
  __m256i first[kRows];
  __m256i second[kRows];
  half_dots<Format, kPart, kRows>(block, quad, lane, 0, group, row_groups, first);
  half_dots<Format, kPart, kRows>(block, quad, lane, 1, group, row_groups, second);
  for (int r = 0; r < kRows; ++r) {
    if (Format::kHalves == 2) {
      first[r] = _mm256_mullo_epi32(first[r], scales.parts[0]);
      second[r] = _mm256_mullo_epi32(second[r], scales.parts[1]);
    }
    const PlaneGroup& x = group[r * row_groups];
    sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(first[r], second[r])),
                              _mm256_mul_ps(scales.scale, _mm256_set1_ps(x.scale)), sums[r]);
    if (Format::kHasMinimum) {
      sums[r] = _mm256_fmadd_ps(scales.minimum, _mm256_set1_ps(x.sum), sums[r]);
    }
  }
}

// 8 rows of a panel, from `lane` on, x kRows activation rows.
template <typename Format, int kRows>
void panel_dots(const typename Format::Block* blocks, int lane, const PlaneGroup* groups,
                int64_t row_groups, __m256* totals) {
  constexpr bool kTwo = Format::kTogether >= 2;
  constexpr bool kFour = Format::kTogether == 4;
  for (int r = 0; r < kRows; ++r) totals[r] = _mm256_setzero_ps();
  for (int64_t start = 0; start < row_groups; start += kSegmentGroups) {
    const int64_t end = smaller(start + kSegmentGroups, row_groups);
    __m256 sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = _mm256_setzero_ps();
    for (int64_t g = start; g < end; g += Format::kTogether) {
      const typename Format::Block& block = blocks[g / Format::kGroups];
      const int quad = static_cast<int>(g % Format::kGroups) / Format::kTogether;
      if (lane == 0 && quad == 0) {
        prefetch(reinterpret_cast<const char*>(&block) + kFetchAhead, sizeof block);
      }
      add_group<Format, 0, kRows>(block, quad, lane, groups + g, row_groups, sums);
      if (kTwo) {
        add_group<Format, kTwo ? 1 : 0, kRows>(block, quad, lane, groups + g + 1, row_groups, sums);
      }
      if (kFour) {
        add_group<Format, kFour ? 2 : 0, kRows>(block, quad, lane, groups + g + 2, row_groups,
                                                sums);
        add_group<Format, kFour ? 3 : 0, kRows>(block, quad, lane, groups + g + 3, row_groups,
                                                sums);
      }
    }
    for (int r = 0; r < kRows; ++r) totals[r] = _mm256_add_ps(totals[r], sums[r]);
  }
}

template <typename Format, int kRows>
void multiply_rows(const Job& job, int64_t panel, int64_t row) {
  const MatmulArgs& args = *job.args;
  const auto* blocks = static_cast<const typename Format::Block*>(args.panels) +
                       panel * (job.groups / Format::kGroups);
  const auto* groups = reinterpret_cast<const PlaneGroup*>(job.activations) + row * job.groups;
  for (int lane = 0; lane < kPanelLanes; lane += kLanes) {
    const int64_t first = panel * kPanelLanes + lane;
    const int64_t stored = smaller(kLanes, args.n - first);
    if (stored <= 0) return;
    __m256 outputs[kRows];
    panel_dots<Format, kRows>(blocks, lane, groups, job.groups, outputs);
    for (int r = 0; r < kRows; ++r) {
      float lanes[kLanes];
      _mm256_storeu_ps(lanes, outputs[r]);
      float* out = args.out + (row + r) * args.n + first;
      for (int64_t i = 0; i < stored; ++i) out[i] = lanes[i];
    }
  }
}

// A panel x all activation rows.
template <typename Format>
void multiply_panel(const Job& job, int64_t panel) {
  int64_t r = 0;
  for (; r + kRowsAtOnce <= job.args->rows; r += kRowsAtOnce) {
    multiply_rows<Format, kRowsAtOnce>(job, panel, r);
  }
  if (r < job.args->rows) multiply_rows<Format, 1>(job, panel, r);
}

// Task: a band of panels.
template <typename Format>
void multiply_band(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t end = smaller((task + 1) * job.band, divide_up(job.args->n, kPanelLanes));
  for (int64_t panel = task * job.band; panel < end; ++panel) multiply_panel<Format>(job, panel);
}

template <typename Format>
MatmulWork plan_format(Job& job, int threads) {
  const int64_t panels = divide_up(job.args->n, kPanelLanes);
  job.band = streamed_band(panels, job.parts, threads);
  return {quantise_planes<Format>, job.args->rows, multiply_band<Format>,
          divide_up(panels, job.band)};
}

MatmulWork plan(Job& job, int threads) {
  job.groups = activation_groups(job.args->weight_type, job.args->k);
  switch (job.args->weight_type) {
    case DType::kQ4_0:
      return plan_format<PanelsQ4_0>(job, threads);
    case DType::kQ4_1:
      return plan_format<PanelsQ4_1>(job, threads);
    case DType::kP4:
      return plan_format<PanelsP4>(job, threads);
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

void matmul_exact_panels_avx2(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactPanelsAvx2, kSourceHash, args);
  if (args.rows == 0) return;
  const uint64_t bytes = panel_matmul_scratch(args.weight_type, args.rows, args.k);
  Job job{};
  job.args = &args;
  job.activations = static_cast<char*>(scratch(context, bytes));
  run(context, job, plan);
}

void expert_swiglu_exact_panels_avx2(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kExactPanelsAvx2, kSourceHash, args);
  run_expert_swiglu(args, context, kExperts);
}

void expert_combine_exact_panels_avx2(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kExactPanelsAvx2, kSourceHash, args);
  run_expert_combine(args, context, kExperts);
}

const char* matmul_exact_panels_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
