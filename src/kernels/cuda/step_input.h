// What a pass reads from device memory, put there by a kernel whose launch carries it: no copy
// engine, and no pinned buffer that would have to be waited for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/cuda/queue.h"
#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

// Writes `input` to *to and `tokens` to token_memory (device memory), behind all that was queued on
// `stream`, which starts nothing before it is done. Where `picked` (device memory, null: none) is
// given, its token is the pass's first. The error is that of a launch.
[[nodiscard]] cudaError_t write_step_input(cudaStream_t stream, const StepInput& input,
                                           std::span<const int32_t> tokens, const Pick* picked,
                                           StepInput* to, int32_t* token_memory);

}  // namespace reckon::kernels::cuda
