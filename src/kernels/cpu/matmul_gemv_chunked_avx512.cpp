// The GEMV of decode as a prefill kernel (matmul_split_k.h): chunks of up to 8 activation rows, one
// after the other, each over all panels. What an engine does that has no matmul of its own for
// prefill; here a yardstick, since exact_panels_avx512 keeps a band of weights in the cache while
// all rows pass over it.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/matmul_gemv_chunked_avx512.hash.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/matmul_split_k.h"
#include "kernels/cpu/panel_dots_avx512.h"

namespace reckon::kernels::cpu {
namespace {

struct Chunk {
  const Job* job;
  MultiplyPanel multiply;
  int64_t first_row;
};

// Task: a band of panels x the rows of the chunk.
void multiply_band(void* argument, int64_t task, int /*thread*/) {
  const auto& chunk = *static_cast<const Chunk*>(argument);
  const Job& job = *chunk.job;
  const int64_t end = smaller((task + 1) * job.band, divide_up(job.args->n, kPanelLanes));
  for (int64_t panel = task * job.band; panel < end; ++panel) {
    chunk.multiply(job, panel, chunk.first_row);
  }
}

template <typename Format>
void multiply_chunks(KernelContext& context, Job& job) {
  const int64_t rows = job.args->rows;
  const int64_t panels = divide_up(job.args->n, kPanelLanes);
  job.band = streamed_band(panels, 1, thread_count(context));
  parallel_for(context, rows, quantise_row<Format>, &job);
  for (int64_t r = 0; r < rows; r += kRowsAtOnce) {
    Chunk chunk{&job, multiply_panel_of<Format>(smaller(kRowsAtOnce, rows - r)), r};
    parallel_for(context, divide_up(panels, job.band), multiply_band, &chunk);
  }
}

}  // namespace

void matmul_gemv_chunked(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kGemvChunked, kSourceHash, args);
  if (args.rows == 0) return;
  Job job{};
  job.args = &args;
  job.groups = activation_groups(args.weight_type, args.k);
  const uint64_t bytes = panel_matmul_scratch(args.weight_type, args.rows, args.k);
  job.activations = static_cast<char*>(scratch(context, bytes));
  with_panel_format(args.weight_type,
                    [&]<typename Format>(Format) { multiply_chunks<Format>(context, job); });
}

const char* matmul_gemv_chunked_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
