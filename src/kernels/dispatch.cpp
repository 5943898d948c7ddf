#include "kernels/dispatch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "kernels/call.h"

namespace reckon::kernels {
namespace {

// For a variant that reads rows.
template <typename Args>
void forget_panels(Args& args) {
  if constexpr (requires { args.panels; }) args.panels = nullptr;
  if constexpr (requires { args.gate_panels; }) args.gate_panels = args.up_panels = nullptr;
  if constexpr (requires { args.down_panels; }) args.down_panels = nullptr;
}

}  // namespace

Dispatcher::Dispatcher(Planner& planner, const DispatchResources& resources)
    : planner_(planner),
      context_{.threads = resources.threads,
               .trace = resources.trace,
               .scratch = resources.scratch,
               .scratch_bytes = resources.scratch_bytes,
               .declared_bytes = 0,
               .queue = resources.queue,
               .audit = resources.audit,
               .error = {}} {
  RECKON_CHECK(context_.threads == nullptr || context_.threads->threads() <= planner.threads());
  RECKON_CHECK(context_.trace != nullptr);
  RECKON_CHECK(context_.scratch != nullptr || context_.scratch_bytes == 0);
  RECKON_CHECK(reinterpret_cast<uintptr_t>(context_.scratch) % 64 == 0);
  set_phase(phase_);
}

void Dispatcher::set_phase(Phase phase) {
  phase_ = phase;
  context_.trace->set_phase(phase);
}

Status Dispatcher::prepare(const OpCall& call, const Choice& choice) {
  if (choice.scratch_bytes > context_.scratch_bytes) {
    return refused(std::string(op_name(call.op)) + " " + shape_text(call) + " by " +
                   choice.variant->name + " needs " + format_bytes(choice.scratch_bytes) +
                   " of scratch, the session has " + format_bytes(context_.scratch_bytes));
  }
  context_.declared_bytes = choice.scratch_bytes;
  return {};
}

// A device's error, with the op that it came from.
Status Dispatcher::outcome(const OpCall& call, const Choice& choice) {
  if (context_.error.empty()) return {};
  const std::string error = std::exchange(context_.error, {});
  return failed(std::string(op_name(call.op)) + " " + shape_text(call) + " by " +
                choice.variant->name + ": " + error);
}

template <typename Function, typename Args>
Status Dispatcher::run(Args args) {
  const OpCall call = call_of(args, phase_);
  TRY_ASSIGN(const Choice* choice, planner_.choose(call));
  TRY(prepare(call, *choice));
  if constexpr (requires { args.params; }) args.params = choice->params;
  if (choice->layout != WeightLayout::kPanels) forget_panels(args);
  std::get<Function>(choice->variant->function)(args, context_);
  if (context_.audit != nullptr) {
    for (const Access& access : accesses_of(args)) context_.audit->note(access);
  }
  return outcome(call, *choice);
}

Status Dispatcher::embedding(const Weight& table, std::span<const int32_t> tokens, Activation out) {
  RECKON_CHECK(std::all_of(tokens.begin(), tokens.end(),
                           [&](int32_t token) { return token >= 0 && token < table.n; }));
  return run<EmbeddingFn>(embedding_args(table, tokens, out));
}

Status Dispatcher::rms_norm(Activation x, const Weight& weight, float epsilon, Activation out) {
  return run<RmsNormFn>(rms_norm_args(x, weight, epsilon, out));
}

Status Dispatcher::matmul(Activation x, const Weight& weight, Activation out) {
  return run<MatmulFn>(matmul_args(x, weight, out));
}

Status Dispatcher::rope(Activation x, const Rope& rope, int64_t first_position) {
  return run<RopeFn>(rope_args(x, rope, first_position));
}

Status Dispatcher::attention(Activation q, Activation k, Activation v, const KvCache& cache,
                             int64_t first_position, float scale, Activation out) {
  return run<AttentionFn>(attention_args(q, k, v, cache, first_position, scale, out));
}

Status Dispatcher::swiglu(Activation gate, Activation up, Activation out) {
  return run<SwigluFn>(swiglu_args(gate, up, out));
}

Status Dispatcher::geglu(Activation gate, Activation up, Activation out) {
  return run<GegluFn>(geglu_args(gate, up, out));
}

Status Dispatcher::add_bias(Activation x, const Weight& bias) {
  return run<AddBiasFn>(add_bias_args(x, bias));
}

Status Dispatcher::scale(Activation x, float factor) {
  return run<ScaleFn>(scale_args(x, factor));
}

Status Dispatcher::add(Activation x, Activation y, Activation out) {
  return run<AddFn>(add_args(x, y, out));
}

Status Dispatcher::sample(Activation logits, const Sampling& sampling, std::span<Pick> picks) {
  return run<SampleFn>(sample_args(logits, sampling, picks));
}

Status Dispatcher::causal_conv(Activation x, const Weight& weight, const ConvState& state,
                               int64_t first_position, Activation out) {
  return run<CausalConvFn>(causal_conv_args(x, weight, state, first_position, out));
}

Status Dispatcher::gated_delta_rule(Activation qkv, Activation a, Activation b,
                                    const DeltaGates& gates, const DeltaState& state,
                                    int64_t first_position, Activation out) {
  return run<GatedDeltaRuleFn>(gated_delta_rule_args(qkv, a, b, gates, state, first_position, out));
}

Status Dispatcher::gated_rms_norm(Activation x, Activation z, const Weight& weight, float epsilon,
                                  Activation out) {
  return run<GatedRmsNormFn>(gated_rms_norm_args(x, z, weight, epsilon, out));
}

Status Dispatcher::split_gate(Activation x, int64_t heads, Activation q, Activation gate) {
  return run<SplitGateFn>(split_gate_args(x, heads, q, gate));
}

Status Dispatcher::sigmoid_gate(Activation x, Activation gate) {
  return run<SigmoidGateFn>(sigmoid_gate_args(x, gate));
}

Status Dispatcher::gated_add(Activation y, Activation gate, Activation out) {
  return run<GatedAddFn>(gated_add_args(y, gate, out));
}

Status Dispatcher::concat(Activation a, Activation b, Activation out) {
  return run<ConcatFn>(concat_args(a, b, out));
}

Status Dispatcher::route(Activation logits, RouteWeights weights, Activation selection) {
  return run<RouteFn>(route_args(logits, weights, selection));
}

Status Dispatcher::expert_matmul_swiglu(Activation x, Activation selection, const Weight& gate,
                                        const Weight& up, int64_t experts, Activation out) {
  return run<ExpertMatmulSwigluFn>(expert_matmul_swiglu_args(x, selection, gate, up, experts, out));
}

Status Dispatcher::expert_matmul_combine(Activation x, Activation selection, const Weight& down,
                                         int64_t experts, Activation out) {
  return run<ExpertMatmulCombineFn>(expert_matmul_combine_args(x, selection, down, experts, out));
}

Status Dispatcher::run_fused(const AddRmsNormArgs& args) {
  return run<AddRmsNormFn>(args);
}

Status Dispatcher::run_fused(const MatmulGroupArgs& args) {
  return run<MatmulGroupFn>(args);
}

Status Dispatcher::run_fused(const MatmulSwigluArgs& args) {
  return run<MatmulSwigluFn>(args);
}

Status Dispatcher::run_fused(const RopeAttentionArgs& args) {
  return run<RopeAttentionFn>(args);
}

}  // namespace reckon::kernels
