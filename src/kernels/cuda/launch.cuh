// Launching a kernel of a pass: the launch itself, its note in the trace, and the device's side of
// programmatic dependent launch.
//
// With queue.overlap the next kernel of the stream may start while this one runs. Its rules:
//  - every kernel launched by launch() calls wait_for_previous() in each thread block that touches
//    memory, before it reads what a kernel of the pass wrote, and before it writes anything;
//  - before it, a kernel may read what no kernel of the pass writes: weights, StepInput, and the
//    cache below StepInput's first position. That needs a full dependency between passes (the
//    kernel that fills StepInput is one);
//  - release_next() comes first: the next kernel's blocks are placed when all of this one's are.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/queue.h"

namespace reckon::kernels::cuda {

// Waits until the kernels before this one in the stream have finished and their writes are seen.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel of the stream start.
__device__ __forceinline__ void release_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Launches on queue(context).stream, notes the launch and reports an error of it.
template <typename... Parameters, typename... Arguments>
void launch(KernelContext& context, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            uint32_t shared_bytes, const Arguments&... arguments) {
  const auto* handle = reinterpret_cast<const void*>(kernel);
  const Queue& queue = cuda::queue(context);
  if (shared_bytes > 48 * 1024) {
    check(context, cudaFuncSetAttribute(handle, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = queue.stream;
  config.attrs = &attribute;
  config.numAttrs = queue.overlap ? 1 : 0;
  note_launch(context, handle, grid, block, shared_bytes);
  check(context, cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

}  // namespace reckon::kernels::cuda
