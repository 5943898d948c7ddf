// The reference kernels: each op in float32 and simple loops, the oracle of every other variant.
//
// No quantised activations, no vector code by hand, and every row computed as if it were alone.
// Formulas and argument meanings: kernels/kernel.h. Where a sum is not plain float32 in ascending
// order, the file says so. Each hash function returns the source hash of its file.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::reference {

inline constexpr const char* kName = "reference";

void embedding(const EmbeddingArgs& args, KernelContext& context);
void rms_norm(const RmsNormArgs& args, KernelContext& context);
void matmul(const MatmulArgs& args, KernelContext& context);
void rope(const RopeArgs& args, KernelContext& context);
void attention(const AttentionArgs& args, KernelContext& context);
void swiglu(const SwigluArgs& args, KernelContext& context);
void geglu(const GegluArgs& args, KernelContext& context);
void add(const AddArgs& args, KernelContext& context);
void add_bias(const AddBiasArgs& args, KernelContext& context);
void scale(const ScaleArgs& args, KernelContext& context);
void sample(const SampleArgs& args, KernelContext& context);
void causal_conv(const CausalConvArgs& args, KernelContext& context);
void gated_delta_rule(const GatedDeltaRuleArgs& args, KernelContext& context);
void gated_rms_norm(const GatedRmsNormArgs& args, KernelContext& context);
void split_gate(const SplitGateArgs& args, KernelContext& context);
void sigmoid_gate(const SigmoidGateArgs& args, KernelContext& context);
void gated_add(const GatedAddArgs& args, KernelContext& context);
void concat(const ConcatArgs& args, KernelContext& context);
void route(const RouteArgs& args, KernelContext& context);
void expert_matmul_swiglu(const ExpertMatmulSwigluArgs& args, KernelContext& context);
void expert_matmul_combine(const ExpertMatmulCombineArgs& args, KernelContext& context);

// Scratch that matmul needs: the activations transposed and a few float32 weight rows a thread.
[[nodiscard]] uint64_t matmul_scratch_bytes(int64_t rows, int64_t k, int threads);
// Scratch of the expert matmuls: `matrices` float32 weight rows a thread.
[[nodiscard]] uint64_t expert_scratch_bytes(int64_t matrices, int64_t k, int threads);

[[nodiscard]] const char* embedding_hash();
[[nodiscard]] const char* rms_norm_hash();
[[nodiscard]] const char* matmul_hash();
[[nodiscard]] const char* rope_hash();
[[nodiscard]] const char* attention_hash();
[[nodiscard]] const char* swiglu_hash();
[[nodiscard]] const char* geglu_hash();
[[nodiscard]] const char* add_hash();
[[nodiscard]] const char* add_bias_hash();
[[nodiscard]] const char* scale_hash();
[[nodiscard]] const char* sample_hash();
[[nodiscard]] const char* causal_conv_hash();
[[nodiscard]] const char* gated_delta_rule_hash();
[[nodiscard]] const char* gated_rms_norm_hash();
[[nodiscard]] const char* split_gate_hash();
[[nodiscard]] const char* sigmoid_gate_hash();
[[nodiscard]] const char* gated_add_hash();
[[nodiscard]] const char* concat_hash();
[[nodiscard]] const char* route_hash();
[[nodiscard]] const char* expert_matmul_hash();

}  // namespace reckon::kernels::reference
