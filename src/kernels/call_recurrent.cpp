// Calls of the ops of recurrent layers and of gates (recurrent_args.h).
#include "base/check.h"
#include "kernels/call.h"

namespace reckon::kernels {
namespace {

bool same_shape(const Activation& a, const Activation& b) {
  return a.rows == b.rows && a.columns == b.columns;
}

// The values of a float32 vector of `k` elements.
const float* vector_of(const Weight* weight, int64_t k) {
  RECKON_CHECK(weight != nullptr && weight->type == DType::kF32);
  RECKON_CHECK(weight->n == 1 && weight->k == k);
  return static_cast<const float*>(weight->data);
}

}  // namespace

CausalConvArgs causal_conv_args(Activation x, const Weight& weight, const ConvState& state,
                                int64_t first_position, Activation out) {
  RECKON_CHECK(weight.type == DType::kF32 && weight.n == x.columns && weight.k > 0);
  RECKON_CHECK(same_shape(x, out) && (x.data == nullptr || x.data != out.data));
  RECKON_CHECK(state.channels == x.columns && state.ring >= weight.k - 1);
  RECKON_CHECK(state.ring > 0 && first_position >= 0);
  return {.x = x.data,
          .weight = static_cast<const float*>(weight.data),
          .inputs = state.inputs,
          .out = out.data,
          .rows = x.rows,
          .channels = x.columns,
          .width = weight.k,
          .ring = state.ring,
          .first_position = first_position};
}

GatedDeltaRuleArgs gated_delta_rule_args(Activation qkv, Activation a, Activation b,
                                         const DeltaGates& gates, const DeltaState& state,
                                         int64_t first_position, Activation out) {
  RECKON_CHECK(state.key_heads > 0 && state.value_heads % state.key_heads == 0);
  const int64_t qk_width = 2 * state.key_heads * state.key_dim;
  const int64_t v_width = state.value_heads * state.value_dim;
  RECKON_CHECK(qkv.columns == qk_width + v_width && out.columns == v_width);
  RECKON_CHECK(same_shape(a, b) && a.columns == state.value_heads);
  RECKON_CHECK(qkv.rows == out.rows && qkv.rows == a.rows);
  RECKON_CHECK(state.slots > 0 && first_position >= 0);
  return {.qkv = qkv.data,
          .a = a.data,
          .b = b.data,
          .a_log = vector_of(gates.a_log, state.value_heads),
          .dt_bias = vector_of(gates.dt_bias, state.value_heads),
          .states = state.states,
          .out = out.data,
          .rows = qkv.rows,
          .key_heads = state.key_heads,
          .value_heads = state.value_heads,
          .key_dim = state.key_dim,
          .value_dim = state.value_dim,
          .slots = state.slots,
          .first_position = first_position,
          .key_order = state.key_order};
}

GatedRmsNormArgs gated_rms_norm_args(Activation x, Activation z, const Weight& weight,
                                     float epsilon, Activation out) {
  RECKON_CHECK(same_shape(x, z) && same_shape(x, out));
  RECKON_CHECK(weight.k > 0 && x.columns % weight.k == 0);
  return {.x = x.data,
          .z = z.data,
          .weight = vector_of(&weight, weight.k),
          .out = out.data,
          .rows = x.rows * (x.columns / weight.k),
          .k = weight.k,
          .epsilon = epsilon};
}

SplitGateArgs split_gate_args(Activation x, int64_t heads, Activation q, Activation gate) {
  RECKON_CHECK(heads > 0 && q.columns % heads == 0 && same_shape(q, gate));
  RECKON_CHECK(x.rows == q.rows && x.columns == 2 * q.columns);
  return {.x = x.data,
          .q = q.data,
          .gate = gate.data,
          .rows = x.rows,
          .heads = heads,
          .dim = q.columns / heads};
}

SigmoidGateArgs sigmoid_gate_args(Activation x, Activation gate) {
  RECKON_CHECK(same_shape(x, gate));
  return {.x = x.data, .gate = gate.data, .rows = x.rows, .k = x.columns};
}

GatedAddArgs gated_add_args(Activation y, Activation gate, Activation out) {
  RECKON_CHECK(same_shape(y, out) && gate.rows == y.rows && gate.columns == 1);
  return {.y = y.data, .gate = gate.data, .out = out.data, .rows = y.rows, .k = y.columns};
}

ConcatArgs concat_args(Activation a, Activation b, Activation out) {
  RECKON_CHECK(a.rows == b.rows && a.rows == out.rows);
  RECKON_CHECK(out.columns == a.columns + b.columns);
  return {.a = a.data,
          .b = b.data,
          .out = out.data,
          .rows = a.rows,
          .a_columns = a.columns,
          .b_columns = b.columns};
}

OpCall call_of(const CausalConvArgs& args, Phase phase) {
  return {Op::kCausalConv, phase, DType::kF32, args.rows, 0, args.channels, args.width};
}

OpCall call_of(const GatedDeltaRuleArgs& args, Phase phase) {
  OpCall call{Op::kGatedDeltaRule, phase,        DType::kF32,   args.rows,
              args.value_heads,    args.key_dim, args.key_heads};
  call.m = args.value_dim;
  return call;
}

OpCall call_of(const GatedRmsNormArgs& args, Phase phase) {
  return {Op::kGatedRmsNorm, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const SplitGateArgs& args, Phase phase) {
  return {Op::kSplitGate, phase, DType::kF32, args.rows, args.heads, args.dim, 0};
}

OpCall call_of(const SigmoidGateArgs& args, Phase phase) {
  return {Op::kSigmoidGate, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const GatedAddArgs& args, Phase phase) {
  return {Op::kGatedAdd, phase, DType::kF32, args.rows, 0, args.k, 0};
}

OpCall call_of(const ConcatArgs& args, Phase phase) {
  return {Op::kConcat, phase, DType::kF32, args.rows, args.a_columns, args.b_columns, 0};
}

}  // namespace reckon::kernels
