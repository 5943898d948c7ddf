// Sampling on CUDA, numerics class exact: what drawn from which logits depends on the row alone.
//
// A row is cut into chunks of kSampleChunk logits, whatever its length. Greedy is exact: the
// highest logit, ties to the lowest index. With a temperature, shares e^((logit - highest) / T) are
// float64 and summed in a fixed order: 8 consecutive ones a thread, threads of a chunk by a scan in
// a fixed tree, chunks by another, each taken relative to its own highest logit and scaled to the
// row's. The rule is that of kernel.h; the token may differ from the CPU's only where the
// random number lies within rounding (1e-15) of a boundary.
//
// Temperature and random number are read from the queue's StepInput. Plain types only.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

inline constexpr int64_t kSampleChunk = 2048;

void sample_exact(const SampleArgs& args, KernelContext& context);
[[nodiscard]] const char* sample_exact_hash();

// One summary a chunk and row.
[[nodiscard]] constexpr uint64_t sample_scratch_bytes(int64_t rows, int64_t n) {
  return static_cast<uint64_t>(rows * ((n + kSampleChunk - 1) / kSampleChunk)) * 24;
}

}  // namespace reckon::kernels::cuda
