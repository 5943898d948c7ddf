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
#include "kernels/cpu/vectors_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kRowsAtOnce = 2;
constexpr int kLanes = 8;
// Where 16-bit sums of codes times low bytes begin, so that they do not leave 16 bits: 8 words of
// codes of 4 bits add up to 61200 at most, 2 words of codes of 6 bits to 64260.
template <typename Format>
constexpr int16_t kLowStart = Format::kHalves == 1 ? -30600 : -32130;
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
    // A lane of 32 bits has taken kLowStart twice, in each half four times.
    if (Format::kHalves == 1) {
      groups[g].starts[0] = first + second - 2 * kLowStart<Format>;
      groups[g].starts[1] = 0;
    } else {
      groups[g].starts[0] = first - 4 * kLowStart<Format>;
      groups[g].starts[1] = second - 4 * kLowStart<Format>;
    }
  }
}

// The sums of a panel's 16 rows, in halves, and kRows activation rows.
template <int kRows>
struct PanelSums {
  __m256 lanes[2][kRows];

  void clear() {
    for (int r = 0; r < kRows; ++r) lanes[0][r] = lanes[1][r] = _mm256_setzero_ps();
  }
  void add(const PanelSums& other) {
    for (int h = 0; h < 2; ++h) {
      for (int r = 0; r < kRows; ++r) {
        lanes[h][r] = _mm256_add_ps(lanes[h][r], other.lanes[h][r]);
      }
    }
  }
};

// Group kPart of a panel, codes of 4 bits: dots of each half of its rows with kRows activation
// rows, `row_groups` apart.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void nibble_dots(const typename Format::Block& block, int quad,
                                               const PlaneGroup* group, int64_t row_groups,
                                               __m256i (&dots)[2][kRows]) {
  __m256i high[2][kRows];
  __m256i low[2][kRows];
  for (int r = 0; r < kRows; ++r) {
    high[0][r] = high[1][r] = _mm256_setzero_si256();
    low[0][r] = low[1][r] = _mm256_set1_epi16(kLowStart<Format>);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m256i first = Format::template codes<kPart>(block, quad, 0, i);
    const __m256i second = Format::template codes<kPart>(block, quad, kLanes, i);
    for (int r = 0; r < kRows; ++r) {
      const __m256i x_high = broadcast(group[r * row_groups].high + 4 * i);
      const __m256i x_low = broadcast(group[r * row_groups].low + 4 * i);
      add_words(high[0][r], _mm256_maddubs_epi16(first, x_high));
      add_words(high[1][r], _mm256_maddubs_epi16(second, x_high));
      add_words(low[0][r], _mm256_maddubs_epi16(x_low, first));
      add_words(low[1][r], _mm256_maddubs_epi16(x_low, second));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const __m256i start = broadcast(group[r * row_groups].starts);
    for (int h = 0; h < 2; ++h) {
      const __m256i high32 = _mm256_madd_epi16(high[h][r], _mm256_set1_epi16(256));
      const __m256i low32 = _mm256_madd_epi16(low[h][r], _mm256_set1_epi16(1));
      dots[h][r] = _mm256_add_epi32(_mm256_add_epi32(high32, low32), start);
    }
  }
}

// Words 4 * half ... of group kPart, codes of 6 bits, which have scales of halves.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void half_dots(const typename Format::Block& block, int quad,
                                             int lane, int half, const PlaneGroup* group,
                                             int64_t row_groups, __m256i* dots) {
  __m256i high[kRows];
  __m256i low[kRows];
  for (int r = 0; r < kRows; ++r) {
    high[r] = _mm256_setzero_si256();
    low[r] = broadcast(&group[r * row_groups].starts[half]);
  }
#pragma GCC unroll 2
  for (int i = 4 * half; i < 4 * half + 4; i += 2) {
    const __m256i a = Format::template codes<kPart>(block, quad, lane, i);
    const __m256i b = Format::template codes<kPart>(block, quad, lane, i + 1);
    for (int r = 0; r < kRows; ++r) {
      const PlaneGroup& x = group[r * row_groups];
      const __m256i h = _mm256_add_epi16(_mm256_maddubs_epi16(a, broadcast(x.high + 4 * i)),
                                         _mm256_maddubs_epi16(b, broadcast(x.high + 4 * i + 4)));
      const __m256i l =
          _mm256_add_epi16(_mm256_add_epi16(_mm256_set1_epi16(kLowStart<Format>),
                                            _mm256_maddubs_epi16(broadcast(x.low + 4 * i), a)),
                           _mm256_maddubs_epi16(broadcast(x.low + 4 * i + 4), b));
      high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(h, _mm256_set1_epi16(256)));
      low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(l, _mm256_set1_epi16(1)));
    }
  }
  for (int r = 0; r < kRows; ++r) dots[r] = _mm256_add_epi32(high[r], low[r]);
}

// The same of 8 weight rows of codes of 6 bits, each half of a group times its integer scale.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void scaled_dots(const typename Format::Block& block, int quad,
                                               int lane, const PanelScales& scales,
                                               const PlaneGroup* group, int64_t row_groups,
                                               __m256i (&dots)[kRows]) {
  __m256i second[kRows];
  half_dots<Format, kPart, kRows>(block, quad, lane, 0, group, row_groups, dots);
  half_dots<Format, kPart, kRows>(block, quad, lane, 1, group, row_groups, second);
  for (int r = 0; r < kRows; ++r) {
    dots[r] = _mm256_add_epi32(_mm256_mullo_epi32(dots[r], scales.parts[0]),
                               _mm256_mullo_epi32(second[r], scales.parts[1]));
  }
}

// Group kPart of a panel into the sums of kRows activation rows.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void add_group(const typename Format::Block& block, int quad,
                                             const PlaneGroup* group, int64_t row_groups,
                                             PanelSums<kRows>& sums) {
  __m256i dots[2][kRows];
  if constexpr (Format::kHalves == 1) {
    nibble_dots<Format, kPart, kRows>(block, quad, group, row_groups, dots);
  }
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const PanelScales scales = Format::template scales<kPart>(block, quad, h * kLanes);
    if constexpr (Format::kHalves == 2) {
      scaled_dots<Format, kPart, kRows>(block, quad, h * kLanes, scales, group, row_groups,
                                        dots[h]);
    }
    for (int r = 0; r < kRows; ++r) {
      const PlaneGroup& x = group[r * row_groups];
      __m256& sum = sums.lanes[h][r];
      sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[h][r]),
                            _mm256_mul_ps(scales.scale, _mm256_set1_ps(x.scale)), sum);
      if (Format::kHasMinimum) sum = _mm256_fmadd_ps(scales.minimum, _mm256_set1_ps(x.sum), sum);
    }
  }
}

// A panel x kRows activation rows.
template <typename Format, int kRows>
void panel_dots(const typename Format::Block* blocks, const PlaneGroup* groups, int64_t row_groups,
                PanelSums<kRows>& totals) {
  constexpr bool kTwo = Format::kTogether >= 2;
  constexpr bool kFour = Format::kTogether == 4;
  constexpr int64_t kQuadBytes =
      sizeof(typename Format::Block) * Format::kTogether / Format::kGroups;
  totals.clear();
  for (int64_t start = 0; start < row_groups; start += kSegmentGroups) {
    const int64_t end = smaller(start + kSegmentGroups, row_groups);
    PanelSums<kRows> sums;
    sums.clear();
    for (int64_t g = start; g < end; g += Format::kTogether) {
      const typename Format::Block& block = blocks[g / Format::kGroups];
      const int quad = static_cast<int>(g % Format::kGroups) / Format::kTogether;
      // Line by line beside the arithmetic: a whole block of q4_k at once is more than a core of
      // Zen 2 has in flight.
      prefetch(reinterpret_cast<const char*>(&block) + quad * kQuadBytes + kFetchAhead, kQuadBytes);
      const PlaneGroup* group = groups + g;
      add_group<Format, 0, kRows>(block, quad, group, row_groups, sums);
      if (kTwo) {
        add_group<Format, kTwo ? 1 : 0, kRows>(block, quad, group + 1, row_groups, sums);
      }
      if (kFour) {
        add_group<Format, kFour ? 2 : 0, kRows>(block, quad, group + 2, row_groups, sums);
        add_group<Format, kFour ? 3 : 0, kRows>(block, quad, group + 3, row_groups, sums);
      }
    }
    totals.add(sums);
  }
}

template <typename Format, int kRows>
void multiply_rows(const Job& job, int64_t panel, int64_t row) {
  const MatmulArgs& args = *job.args;
  const auto* blocks = static_cast<const typename Format::Block*>(args.panels) +
                       panel * (job.groups / Format::kGroups);
  const auto* groups = reinterpret_cast<const PlaneGroup*>(job.activations) + row * job.groups;
  PanelSums<kRows> outputs;
  panel_dots<Format, kRows>(blocks, groups, job.groups, outputs);
  const int64_t first = panel * kPanelLanes;
  for (int64_t h = 0; h < 2 && first + h * kLanes < args.n; ++h) {
    for (int r = 0; r < kRows; ++r) {
      store8(args.out + (row + r) * args.n + first + h * kLanes, args.n - first - h * kLanes,
             outputs.lanes[h][r]);
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
