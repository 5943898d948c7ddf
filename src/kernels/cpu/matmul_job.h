// What the matmuls of every instruction set share: the running call.
//
// Included by files compiled for one instruction set: plain types only, in a namespace without a
// name, so that none of its functions can be shared with code for another.
#pragma once

#include <cstdint>

#include "kernels/cpu/matmul_work.h"
#include "kernels/kernel.h"

namespace reckon::kernels::cpu {
namespace {

using Job = MatmulJob;

inline int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

inline int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// Panels of a task where few activation rows pass over them: many, since what a task has fetched
// ahead of its end is another thread's (decode of a 1B model of q4_0 is a quarter faster with 16
// than with one); four tasks a thread or more, so that a thread that is late costs little.
inline int64_t streamed_band(int64_t panels, int64_t parts, int threads) {
  constexpr int64_t kMost = 16;
  return smaller(kMost, divide_up(panels * parts, int64_t{4} * threads));
}

inline const char* weight_row(const Job& job, int64_t j) {
  return static_cast<const char*>(job.args->weight) + j * job.row_stride;
}

inline const float* activation_row(const Job& job, int64_t r) {
  const int64_t source = job.sources == nullptr ? r : job.sources[r];
  return job.args->x + source * job.args->k;
}

inline void run(KernelContext& context, Job& job, PlanMatmul plan) {
  const MatmulWork work = plan(job, thread_count(context));
  if (work.prepare_tasks > 0) parallel_for(context, work.prepare_tasks, work.prepare, &job);
  parallel_for(context, work.multiply_tasks, work.multiply, &job);
}

}  // namespace
}  // namespace reckon::kernels::cpu
