// Split-K in the canonical order (matmul_split_k.h): a task takes a band of panels and one segment
// of K, and all activation rows pass over it; the segments' sums are added in ascending order, as
// every exact kernel adds them, so that the bits are theirs.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/matmul_split_k.h"
#include "kernels/cpu/matmul_split_k_exact_avx512.hash.h"
#include "kernels/cpu/panel_dots_avx512.h"
#include "kernels/cpu/split_sums_avx512.h"

namespace reckon::kernels::cpu {
namespace {

struct SplitJob {
  Job job;
  SplitSums split;
};

template <typename Format, int kRows>
void multiply_segment(const SplitJob& work, int64_t panel, int64_t segment, int64_t row) {
  const Job& job = work.job;
  const auto* groups = reinterpret_cast<const PlaneGroup*>(job.activations) + row * job.groups;
  const int64_t first = segment * kSegmentGroups;
  __m512 sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
  add_segment<Format, kRows>(panel_at<Format>(job, panel), groups, job.groups, first,
                             smaller(first + kSegmentGroups, job.groups), sums);
  float* out = panel_sums(work.split, segment, panel) + row * kPanelLanes;
  for (int r = 0; r < kRows; ++r) _mm512_store_ps(out + r * kPanelLanes, sums[r]);
}

using MultiplySegment = void (*)(const SplitJob&, int64_t panel, int64_t segment, int64_t row);

template <typename Format>
MultiplySegment multiply_segment_of(int64_t rows) {
  static constexpr MultiplySegment kFunctions[kRowsAtOnce] = {
      multiply_segment<Format, 1>, multiply_segment<Format, 2>, multiply_segment<Format, 3>,
      multiply_segment<Format, 4>, multiply_segment<Format, 5>, multiply_segment<Format, 6>,
      multiply_segment<Format, 7>, multiply_segment<Format, 8>};
  return kFunctions[rows - 1];
}

// Task: a band of panels x all activation rows, one segment.
template <typename Format>
void multiply_band(void* argument, int64_t task, int /*thread*/) {
  const auto& work = *static_cast<const SplitJob*>(argument);
  const MatmulArgs& args = *work.job.args;
  const int64_t band = task / work.split.parts;
  const int64_t segment = task % work.split.parts;
  const int64_t end = smaller((band + 1) * work.job.band, divide_up(args.n, kPanelLanes));
  for (int64_t r = 0; r < args.rows; r += kRowsAtOnce) {
    const MultiplySegment multiply =
        multiply_segment_of<Format>(smaller(kRowsAtOnce, args.rows - r));
    for (int64_t panel = band * work.job.band; panel < end; ++panel) {
      multiply(work, panel, segment, r);
    }
  }
}

template <typename Format>
void multiply_segments(KernelContext& context, SplitJob& work) {
  const MatmulArgs& args = *work.job.args;
  const int64_t panels = divide_up(args.n, kPanelLanes);
  work.job.band = streamed_band(panels, work.split.parts, thread_count(context));
  const int64_t bands = divide_up(panels, work.job.band);
  parallel_for(context, args.rows, quantise_row<Format>, &work.job);
  parallel_for(context, bands * work.split.parts, multiply_band<Format>, &work);
  parallel_for(context, sum_tasks(work.split), add_parts, &work.split);
}

}  // namespace

void matmul_split_k_exact(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kSplitKExact, kSourceHash, args);
  if (args.rows == 0) return;
  const SplitKScratch layout = split_k_exact_scratch(args.weight_type, args.rows, args.n, args.k);
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  SplitJob work{};
  work.job.args = &args;
  work.job.groups = activation_groups(args.weight_type, args.k);
  work.job.activations = memory;
  work.split = {reinterpret_cast<float*>(memory + layout.sums), args.out,
                exact_splits(args.weight_type, args.k), args.rows, args.n};
  with_panel_format(args.weight_type,
                    [&]<typename Format>(Format) { multiply_segments<Format>(context, work); });
}

const char* matmul_split_k_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
