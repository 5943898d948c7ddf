// A few activation rows as one stream of weights (matmul_few.h). Codes of activations have 8 bits,
// so that they are the signed operand of vpdpbusd and come from memory with the instruction.
//
// Why scales of 8 activations and not of 32: on 1,024 tokens of prose the mean KL of SmolLM2 is
// 2.7e-3 nats a token with 32, over the bar of 1e-3 (docs/numerics.md).
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_few.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/matmul_stream_avx512.hash.h"
#include "kernels/cpu/panel_formats_avx512.h"

namespace reckon::kernels::cpu {
namespace {

constexpr float kLargestByte = 127.0F;
constexpr int64_t kFetchAhead = 3072;  // as panel_dots_avx512.h

// Of 16 lanes, the maximum, or the sum, of each 8 in all of them.
__m512i largest_of_8(__m512i v) {
  v = _mm512_max_epi32(v, _mm512_shuffle_i32x4(v, v, 0xb1));
  v = _mm512_max_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
  return _mm512_max_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_CDAB));
}

__m512i sum_of_8(__m512i v) {
  v = _mm512_add_epi32(v, _mm512_shuffle_i32x4(v, v, 0xb1));
  v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
  return _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_CDAB));
}

// Stores the two values that lanes 0 ... 7 and 8 ... 15 have.
void store_both(void* to, __m512i v) {
  _mm_storel_epi64(static_cast<__m128i*>(to),
                   _mm512_castsi512_si128(_mm512_maskz_compress_epi32(0x0101, v)));
}

// 16 activations, half `half` of the group; gives back what their codes stand for.
template <typename Format>
__m512 quantise_half(const float* x, int half, ByteGroup& out) {
  const __m512 v = _mm512_loadu_ps(x);
  const __m512i largest =
      largest_of_8(_mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(kMagnitudeMask)));
  const __mmask16 finite = _mm512_cmplt_epi32_mask(largest, _mm512_set1_epi32(kInfinityBits));
  const __mmask16 used = static_cast<__mmask16>(
      finite & _mm512_cmpge_epi32_mask(largest, _mm512_set1_epi32(kSmallestMagnitude)));
  const __m512 codes_of_largest = _mm512_set1_ps(kLargestByte);
  const __m512 inverse = _mm512_maskz_div_ps(used, codes_of_largest, _mm512_castsi512_ps(largest));
  const __m512i codes = _mm512_maskz_cvtps_epi32(used, _mm512_mul_ps(v, inverse));
  const __m512 scale = _mm512_mask_blend_ps(
      finite, _mm512_set1_ps(__builtin_nanf("")),
      _mm512_maskz_div_ps(used, _mm512_castsi512_ps(largest), codes_of_largest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out.codes) + half, _mm512_cvtepi32_epi8(codes));
  store_both(out.scales + 2 * half, _mm512_castps_si512(scale));
  if (Format::kOffset != 0) {
    store_both(out.starts + 2 * half,
               _mm512_mullo_epi32(sum_of_8(codes), _mm512_set1_epi32(-Format::kOffset)));
  }
  return _mm512_mul_ps(_mm512_cvtepi32_ps(codes), scale);
}

template <typename Format>
void quantise(const float* x, ByteGroup& out) {
  const __m512 first = quantise_half<Format>(x, 0, out);
  const __m512 second = quantise_half<Format>(x + 16, 1, out);
  if (Format::kHasMinimum) out.sum = _mm512_reduce_add_ps(_mm512_add_ps(first, second));
}

// Task: one activation row. Weights that have panels have whole groups.
template <typename Format>
void quantise_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const float* x = activation_row(job, row);
  auto* groups = reinterpret_cast<ByteGroup*>(job.activations) + row * job.groups;
  for (int64_t g = 0; g < job.groups; ++g) quantise<Format>(x + g * kGroup, groups[g]);
}

__m512i broadcast(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm512_set1_epi32(word);
}

// Group kPart into the sums of kRows activation rows, `row_groups` apart: in float32, each 8 codes
// by their scale, then each half by the weights' own.
template <typename Format, int kPart, int kRows>
[[gnu::always_inline]] inline void add_bytes(const typename Format::Block& block,
                                             const PanelHead& head, int quad,
                                             const ByteGroup* group, int64_t row_groups,
                                             __m512* sums) {
  const PanelScales scales = Format::template scales<kPart>(block, head, quad);
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m512 scaled[kRows];
#pragma GCC unroll 2
    for (int eight = 2 * half; eight < 2 * half + 2; ++eight) {
      const __m512i first = Format::template codes<kPart>(block, quad, 2 * eight);
      const __m512i second = Format::template codes<kPart>(block, quad, 2 * eight + 1);
      for (int r = 0; r < kRows; ++r) {
        const ByteGroup& x = group[r * row_groups];
        __m512i dot = Format::kOffset == 0 ? _mm512_setzero_si512() : broadcast(&x.starts[eight]);
        dot = _mm512_dpbusd_epi32(dot, first, broadcast(x.codes + 8 * eight));
        dot = _mm512_dpbusd_epi32(dot, second, broadcast(x.codes + 8 * eight + 4));
        const __m512 scale = _mm512_set1_ps(x.scales[eight]);
        scaled[r] = eight == 2 * half ? _mm512_mul_ps(_mm512_cvtepi32_ps(dot), scale)
                                      : _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, scaled[r]);
      }
    }
    const __m512 scale = Format::kHalves == 1
                             ? scales.scale
                             : _mm512_mul_ps(scales.scale, _mm512_cvtepi32_ps(scales.parts[half]));
    for (int r = 0; r < kRows; ++r) sums[r] = _mm512_fmadd_ps(scaled[r], scale, sums[r]);
  }
  for (int r = 0; r < kRows && Format::kHasMinimum; ++r) {
    sums[r] = _mm512_fmadd_ps(scales.minimum, _mm512_set1_ps(group[r * row_groups].sum), sums[r]);
  }
}

template <typename Format, int kRows>
void multiply_panel(const Job& job, int64_t panel) {
  constexpr bool kTwo = Format::kTogether >= 2;
  constexpr bool kFour = Format::kTogether == 4;
  const MatmulArgs& args = *job.args;
  const auto* groups = reinterpret_cast<const ByteGroup*>(job.activations);
  const auto* blocks = static_cast<const typename Format::Block*>(args.panels) +
                       panel * (job.groups / Format::kGroups);
  __m512 sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
  for (int64_t g = 0; g < job.groups; g += Format::kGroups) {
    const typename Format::Block& block = blocks[g / Format::kGroups];
    prefetch(reinterpret_cast<const char*>(&block) + kFetchAhead, sizeof block);
    const PanelHead head = Format::head(block);
    for (int quad = 0; quad < Format::kGroups / Format::kTogether; ++quad) {
      const ByteGroup* group = groups + g + quad * Format::kTogether;
      add_bytes<Format, 0, kRows>(block, head, quad, group, job.groups, sums);
      if (kTwo) {
        add_bytes<Format, kTwo ? 1 : 0, kRows>(block, head, quad, group + 1, job.groups, sums);
      }
      if (kFour) {
        add_bytes<Format, kFour ? 2 : 0, kRows>(block, head, quad, group + 2, job.groups, sums);
        add_bytes<Format, kFour ? 3 : 0, kRows>(block, head, quad, group + 3, job.groups, sums);
      }
    }
  }
  const int64_t column = panel * kPanelLanes;
  for (int r = 0; r < kRows; ++r) {
    _mm512_mask_storeu_ps(args.out + r * args.n + column, first_lanes(args.n - column), sums[r]);
  }
}

// Task: a band of panels x all activation rows.
template <typename Format, int kRows>
void multiply_band(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t end = smaller((task + 1) * job.band, divide_up(job.args->n, kPanelLanes));
  for (int64_t panel = task * job.band; panel < end; ++panel) {
    multiply_panel<Format, kRows>(job, panel);
  }
}

template <typename Format>
void multiply_rows(KernelContext& context, Job& job) {
  static constexpr MatmulTask kBands[] = {multiply_band<Format, 3>, multiply_band<Format, 4>,
                                          multiply_band<Format, 5>, multiply_band<Format, 6>};
  const int64_t rows = job.args->rows;
  const int64_t panels = divide_up(job.args->n, kPanelLanes);
  job.band = streamed_band(panels, 1, thread_count(context));
  parallel_for(context, rows, quantise_row<Format>, &job);
  parallel_for(context, divide_up(panels, job.band), kBands[rows - kFewestStreamRows], &job);
}

}  // namespace

void matmul_stream(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kStreamAvx512, kSourceHash, args);
  Job job{};
  job.args = &args;
  job.groups = activation_groups(args.weight_type, args.k);
  const uint64_t bytes = stream_matmul_scratch(args.weight_type, args.rows, args.k);
  job.activations = static_cast<char*>(scratch(context, bytes));
  with_panel_format(args.weight_type,
                    [&]<typename Format>(Format) { multiply_rows<Format>(context, job); });
}

const char* matmul_stream_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
