// What the tiled matmuls of every instruction set share: the running call.
//
// Included by files compiled for one instruction set: plain types only, in a namespace without a
// name, so that none of them can be shared with code for another.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {
namespace {

inline int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

inline int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

struct Job {
  const MatmulArgs* args;
  char* activations;
  char* weights;  // unpacked tiles, one buffer a thread
  uint64_t weights_stride;
  int64_t groups;      // of a row of activations, integer formats
  int64_t columns;     // of a row of activations in memory, float formats
  const float* x;      // their rows
  int64_t row_stride;  // bytes between weight rows in the file
  int64_t band;        // panels of a task
};

// Panels of a task where few activation rows pass over them: many, since what a task has fetched
// ahead of its end is another thread's (decode of a 1B model of q4_0 is a quarter faster with 16
// than with one); four tasks a thread or more, so that a thread that is late costs little.
inline int64_t streamed_band(int64_t panels, int threads) {
  constexpr int64_t kMost = 16;
  return smaller(kMost, divide_up(panels, int64_t{4} * threads));
}

inline const char* weight_row(const Job& job, int64_t j) {
  return static_cast<const char*>(job.args->weight) + j * job.row_stride;
}

}  // namespace
}  // namespace reckon::kernels::cpu
