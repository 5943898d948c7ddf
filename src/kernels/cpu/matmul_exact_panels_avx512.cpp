// hashed with "kernels/cpu/expert_matmul.cpp"
// hashed with "kernels/cpu/expert_swiglu_avx2.cpp"
// Exact matmuls over panels with AVX-512 (F, BW, VL, VNNI), in the canonical order
// (canonical_order.h): the bits of the kernels that read rows.
//
// A task takes a band of panels and streams its weights once from memory: all activation rows pass
// over it, 8 at a time, while it is in the cache.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_exact_panels_avx512.hash.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/panel_dots_avx512.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kPanelsOfBand = 4;

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
  MatmulWork work;
  with_panel_format(job.args->weight_type,
                    [&]<typename Format>(Format) { work = plan_format<Format>(job, threads); });
  return work;
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
