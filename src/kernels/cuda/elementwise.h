// Element-by-element kernels and rope on CUDA, numerics class exact. Each hash function
// returns the source hash of its file. Plain types only. Elements do not influence each other.
#pragma once

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

void add_exact(const AddArgs& args, KernelContext& context);
[[nodiscard]] const char* add_exact_hash();

// gate / (1 + e^-gate) * up, by silu.cuh.
void swiglu_exact(const SwigluArgs& args, KernelContext& context);
[[nodiscard]] const char* swiglu_exact_hash();

// x / (1 + e^-gate), the fraction rounded first.
void sigmoid_gate_exact(const SigmoidGateArgs& args, KernelContext& context);
[[nodiscard]] const char* sigmoid_gate_exact_hash();

// head_dim up to 256. Positions from the queue's StepInput.
void rope_exact(const RopeArgs& args, KernelContext& context);
[[nodiscard]] const char* rope_exact_hash();

}  // namespace reckon::kernels::cuda
