// From what a model says (Ops) to what a kernel is told (Args) to what the plan and the trace see
// (OpCall). The Dispatcher, the Recorder and the stamps all go this way, so that they cannot
// disagree on what a call is. Pure functions; shapes that contradict each other are a CHECK.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel.h"
#include "kernels/op.h"
#include "kernels/ops.h"

namespace reckon::kernels {

// The arguments of each op, shapes checked; data pointers are passed on as they are.
[[nodiscard]] EmbeddingArgs embedding_args(const Weight& table, std::span<const int32_t> tokens,
                                           Activation out);
[[nodiscard]] RmsNormArgs rms_norm_args(Activation x, const Weight& weight, float epsilon,
                                        Activation out);
[[nodiscard]] MatmulArgs matmul_args(Activation x, const Weight& weight, Activation out);
[[nodiscard]] RopeArgs rope_args(Activation x, const Rope& rope, int64_t first_position);
[[nodiscard]] AttentionArgs attention_args(Activation q, Activation k, Activation v,
                                           const KvCache& cache, int64_t first_position,
                                           float scale, Activation out);
[[nodiscard]] SwigluArgs swiglu_args(Activation gate, Activation up, Activation out);
[[nodiscard]] GegluArgs geglu_args(Activation gate, Activation up, Activation out);
[[nodiscard]] AddBiasArgs add_bias_args(Activation x, const Weight& bias);
[[nodiscard]] ScaleArgs scale_args(Activation x, float factor);
[[nodiscard]] AddArgs add_args(Activation x, Activation y, Activation out);
[[nodiscard]] SampleArgs sample_args(Activation logits, const Sampling& sampling,
                                     std::span<Pick> picks);
[[nodiscard]] CausalConvArgs causal_conv_args(Activation x, const Weight& weight,
                                              const ConvState& state, int64_t first_position,
                                              Activation out);
[[nodiscard]] GatedDeltaRuleArgs gated_delta_rule_args(Activation qkv, Activation a, Activation b,
                                                       const DeltaGates& gates,
                                                       const DeltaState& state,
                                                       int64_t first_position, Activation out);
[[nodiscard]] GatedRmsNormArgs gated_rms_norm_args(Activation x, Activation z, const Weight& weight,
                                                   float epsilon, Activation out);
[[nodiscard]] SplitGateArgs split_gate_args(Activation x, int64_t heads, Activation q,
                                            Activation gate);
[[nodiscard]] SigmoidGateArgs sigmoid_gate_args(Activation x, Activation gate);
[[nodiscard]] GatedAddArgs gated_add_args(Activation y, Activation gate, Activation out);
[[nodiscard]] ConcatArgs concat_args(Activation a, Activation b, Activation out);
[[nodiscard]] RouteArgs route_args(Activation logits, RouteWeights weights, Activation selection);
[[nodiscard]] ExpertMatmulSwigluArgs expert_matmul_swiglu_args(Activation x, Activation selection,
                                                               const Weight& gate, const Weight& up,
                                                               int64_t experts, Activation out);
[[nodiscard]] ExpertMatmulCombineArgs expert_matmul_combine_args(Activation x, Activation selection,
                                                                 const Weight& down,
                                                                 int64_t experts, Activation out);
[[nodiscard]] AddRmsNormArgs add_rms_norm_args(Activation x, Activation residual,
                                               const Weight& weight, float epsilon, Activation out);
[[nodiscard]] MatmulGroupArgs matmul_group_args(Activation x, std::span<const Weight> weights,
                                                std::span<const Activation> outs);
[[nodiscard]] MatmulSwigluArgs matmul_swiglu_args(Activation x, const Weight& gate,
                                                  const Weight& up, Activation out);
[[nodiscard]] RopeAttentionArgs rope_attention_args(Activation q, Activation k, Activation v,
                                                    const HeadNorms& norms, const Rope& rope,
                                                    const KvCache& cache, int64_t first_position,
                                                    float scale, Activation out);

// The call of a kernel's arguments. The phase is not theirs to know.
[[nodiscard]] OpCall call_of(const EmbeddingArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const RmsNormArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const MatmulArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const RopeArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const AttentionArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const SwigluArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const GegluArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const AddBiasArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const ScaleArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const AddArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const SampleArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const CausalConvArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const GatedDeltaRuleArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const GatedRmsNormArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const SplitGateArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const SigmoidGateArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const GatedAddArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const ConcatArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const RouteArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const ExpertMatmulSwigluArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const ExpertMatmulCombineArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const AddRmsNormArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const MatmulGroupArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const MatmulSwigluArgs& args, Phase phase);
[[nodiscard]] OpCall call_of(const RopeAttentionArgs& args, Phase phase);

// For tables that look calls up; stable within a process only.
[[nodiscard]] uint64_t call_hash(const OpCall& call);

}  // namespace reckon::kernels
