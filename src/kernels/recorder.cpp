#include "kernels/recorder.h"

#include <algorithm>

#include "kernels/call.h"

namespace reckon::kernels {

Status Recorder::record(const OpCall& call) {
  const auto same = [&](const Counted& counted) { return counted.call == call; };
  const auto found = std::find_if(calls_.begin(), calls_.end(), same);
  if (found == calls_.end()) {
    calls_.push_back({call, 1});
  } else {
    ++found->count;
  }
  return {};
}

Status Recorder::embedding(const Weight& table, std::span<const int32_t> tokens, Activation out) {
  return record(call_of(embedding_args(table, tokens, out), phase_));
}

Status Recorder::rms_norm(Activation x, const Weight& weight, float epsilon, Activation out) {
  return record(call_of(rms_norm_args(x, weight, epsilon, out), phase_));
}

Status Recorder::matmul(Activation x, const Weight& weight, Activation out) {
  return record(call_of(matmul_args(x, weight, out), phase_));
}

Status Recorder::rope(Activation x, const Rope& rope, int64_t first_position) {
  return record(call_of(rope_args(x, rope, first_position), phase_));
}

Status Recorder::attention(Activation q, Activation k, Activation v, const KvCache& cache,
                           int64_t first_position, float scale, Activation out) {
  return record(call_of(attention_args(q, k, v, cache, first_position, scale, out), phase_));
}

Status Recorder::swiglu(Activation gate, Activation up, Activation out) {
  return record(call_of(swiglu_args(gate, up, out), phase_));
}

Status Recorder::geglu(Activation gate, Activation up, Activation out) {
  return record(call_of(geglu_args(gate, up, out), phase_));
}

Status Recorder::add_bias(Activation x, const Weight& bias) {
  return record(call_of(add_bias_args(x, bias), phase_));
}

Status Recorder::scale(Activation x, float factor) {
  return record(call_of(scale_args(x, factor), phase_));
}

Status Recorder::add(Activation x, Activation y, Activation out) {
  return record(call_of(add_args(x, y, out), phase_));
}

Status Recorder::sample(Activation logits, const Sampling& sampling, std::span<Pick> picks) {
  return record(call_of(sample_args(logits, sampling, picks), phase_));
}

Status Recorder::causal_conv(Activation x, const Weight& weight, const ConvState& state,
                             int64_t first_position, Activation out) {
  return record(call_of(causal_conv_args(x, weight, state, first_position, out), phase_));
}

Status Recorder::gated_delta_rule(Activation qkv, Activation a, Activation b,
                                  const DeltaGates& gates, const DeltaState& state,
                                  int64_t first_position, Activation out) {
  return record(
      call_of(gated_delta_rule_args(qkv, a, b, gates, state, first_position, out), phase_));
}

Status Recorder::gated_rms_norm(Activation x, Activation z, const Weight& weight, float epsilon,
                                Activation out) {
  return record(call_of(gated_rms_norm_args(x, z, weight, epsilon, out), phase_));
}

Status Recorder::split_gate(Activation x, int64_t heads, Activation q, Activation gate) {
  return record(call_of(split_gate_args(x, heads, q, gate), phase_));
}

Status Recorder::sigmoid_gate(Activation x, Activation gate) {
  return record(call_of(sigmoid_gate_args(x, gate), phase_));
}

Status Recorder::gated_add(Activation y, Activation gate, Activation out) {
  return record(call_of(gated_add_args(y, gate, out), phase_));
}

Status Recorder::concat(Activation a, Activation b, Activation out) {
  return record(call_of(concat_args(a, b, out), phase_));
}

Status Recorder::route(Activation logits, RouteWeights weights, Activation selection) {
  return record(call_of(route_args(logits, weights, selection), phase_));
}

Status Recorder::expert_matmul_swiglu(Activation x, Activation selection, const Weight& gate,
                                      const Weight& up, int64_t experts, Activation out) {
  return record(call_of(expert_matmul_swiglu_args(x, selection, gate, up, experts, out), phase_));
}

Status Recorder::expert_matmul_combine(Activation x, Activation selection, const Weight& down,
                                       int64_t experts, Activation out) {
  return record(call_of(expert_matmul_combine_args(x, selection, down, experts, out), phase_));
}

Status Recorder::run_fused(const AddRmsNormArgs& args) {
  return record(call_of(args, phase_));
}

Status Recorder::run_fused(const MatmulGroupArgs& args) {
  return record(call_of(args, phase_));
}

Status Recorder::run_fused(const MatmulSwigluArgs& args) {
  return record(call_of(args, phase_));
}

Status Recorder::run_fused(const RopeAttentionArgs& args) {
  return record(call_of(args, phase_));
}

}  // namespace reckon::kernels
