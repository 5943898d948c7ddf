// What CUDA kernels get beside their arguments: the stream to launch on, and where the pass's
// tokens and first position lie on the device, so that a captured graph can be replayed for
// another step. Reached by queue(context); owned by the executor (executor.h).
//
// A variant's entry point stamps, launches on queue.stream and reports what the runtime says by
// check(). It never synchronises, never allocates, and reads tokens and positions from the device:
// the host's `tokens` and `first_position` in its arguments are those of the captured step, good
// for checks and for the size of a grid at most.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

// The step's inputs, in device memory; written by the executor before the pass.
struct StepInput {
  int64_t first_position = 0;  // of the pass's first row
  double temperature = 0;      // of sampling
  double uniform = 0;

  friend bool operator==(const StepInput&, const StepInput&) = default;
};

struct GemvDevice;

struct Queue {
  cudaStream_t stream = nullptr;
  const StepInput* input = nullptr;  // on the device
  const int32_t* tokens = nullptr;   // on the device, one a row of the pass
  bool overlap = true;               // programmatic dependent launch between kernels of a pass
  void* matmul_library = nullptr;    // a BlasLt (blaslt.h), null where the library is missing
  const GemvDevice* gemv = nullptr;  // gemv.h
};

[[nodiscard]] inline Queue& queue(KernelContext& context) {
  return *static_cast<Queue*>(backend_queue(context));
}

// Reports an error of a launch to the dispatcher, which adds the op and the variant.
inline void check(KernelContext& context, cudaError_t error) {
  if (error != cudaSuccess) fail(context, cudaGetErrorString(error));
}

// One launch as the trace keeps it: which kernel, on what grid.
void note_launch(KernelContext& context, const void* kernel, dim3 grid, dim3 block,
                 uint32_t shared_bytes);

}  // namespace reckon::kernels::cuda
