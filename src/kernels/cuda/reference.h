// The reference kernels on CUDA: the formulas of kernels/reference/ in simple loops, float32 with
// float64 where that says so, for oracles and tests. One thread an output, or one warp where an
// output is a long sum. Each hash function returns the source hash of their file. Plain types only.
//
// Sums are taken in other orders than on the CPU: results agree to rounding, not in bits.
#pragma once

#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

void rms_norm_reference(const RmsNormArgs& args, KernelContext& context);
// Positions from the queue's StepInput, here and in attention.
void rope_reference(const RopeArgs& args, KernelContext& context);
// A cache of f32 or f16; head_dim up to 1024.
void attention_reference(const AttentionArgs& args, KernelContext& context);
void swiglu_reference(const SwigluArgs& args, KernelContext& context);
void add_reference(const AddArgs& args, KernelContext& context);
// Temperature and random number from the queue's StepInput.
void sample_reference(const SampleArgs& args, KernelContext& context);

// Positions from the queue's StepInput here, too (reference_recurrent.cu).
void causal_conv_reference(const CausalConvArgs& args, KernelContext& context);
void gated_delta_rule_reference(const GatedDeltaRuleArgs& args, KernelContext& context);
void gated_rms_norm_reference(const GatedRmsNormArgs& args, KernelContext& context);
void split_gate_reference(const SplitGateArgs& args, KernelContext& context);
void sigmoid_gate_reference(const SigmoidGateArgs& args, KernelContext& context);
void gated_add_reference(const GatedAddArgs& args, KernelContext& context);
void concat_reference(const ConcatArgs& args, KernelContext& context);
// reference_route.cu
void route_reference(const RouteArgs& args, KernelContext& context);

[[nodiscard]] const char* rms_norm_reference_hash();
[[nodiscard]] const char* rope_reference_hash();
[[nodiscard]] const char* attention_reference_hash();
[[nodiscard]] const char* swiglu_reference_hash();
[[nodiscard]] const char* add_reference_hash();
[[nodiscard]] const char* sample_reference_hash();
[[nodiscard]] const char* recurrent_reference_hash();
[[nodiscard]] const char* route_reference_hash();

}  // namespace reckon::kernels::cuda
