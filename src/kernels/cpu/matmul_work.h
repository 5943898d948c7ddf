// A matmul as work to be shared out: what its tasks work on and how many there are. A plain matmul
// is one piece of work; experts (expert_matmul.h) are many that run side by side.
//
// Plain types only; nothing in here has code.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

struct MatmulJob {
  const MatmulArgs* args = nullptr;
  // Row r of the work is row sources[r] of args->x; null: r.
  const int32_t* sources = nullptr;
  char* activations = nullptr;
  char* weights = nullptr;  // unpacked tiles, one buffer a thread
  uint64_t weights_stride = 0;
  int64_t parts = 1;  // pieces of work of about this size that run together

  // What follows is set by the kernel (PlanMatmul).
  int64_t groups = 0;        // of a row of activations, integer formats
  int64_t columns = 0;       // of a row of activations in memory, float formats
  const float* x = nullptr;  // their rows
  int64_t row_stride = 0;    // bytes between weight rows in the file
  int64_t band = 0;          // panels of a task
  int64_t slots = 0;         // of experts' rows, filled up (expert_fast.h)
};

using MatmulTask = void (*)(void* job, int64_t task, int thread);

// All of `prepare` goes before any of `multiply`; tasks of each may run in any order.
struct MatmulWork {
  MatmulTask prepare = nullptr;
  int64_t prepare_tasks = 0;
  MatmulTask multiply = nullptr;
  int64_t multiply_tasks = 0;
};

// Fills the job and says what is to be run for it. args->rows is at least 1.
using PlanMatmul = MatmulWork (*)(MatmulJob& job, int threads);

}  // namespace reckon::kernels::cpu
