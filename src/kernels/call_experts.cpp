// Calls of the ops of routed experts (expert_args.h).
#include "base/check.h"
#include "kernels/call.h"

namespace reckon::kernels {
namespace {

// Experts that a row of the selection names.
int64_t top_k_of(const Activation& selection, int64_t experts) {
  RECKON_CHECK(selection.columns > 0 && selection.columns % 2 == 0);
  RECKON_CHECK(selection.columns / 2 <= experts);
  return selection.columns / 2;
}

// Rows of one expert's matrix.
int64_t expert_rows(const Weight& weight, int64_t experts) {
  RECKON_CHECK(experts > 0 && weight.n % experts == 0);
  return weight.n / experts;
}

}  // namespace

RouteArgs route_args(Activation logits, RouteWeights weights, Activation selection) {
  RECKON_CHECK(logits.rows == selection.rows);
  return {.logits = logits.data,
          .selection = selection.data,
          .rows = logits.rows,
          .experts = logits.columns,
          .top_k = top_k_of(selection, logits.columns),
          .weights = weights};
}

ExpertMatmulSwigluArgs expert_matmul_swiglu_args(Activation x, Activation selection,
                                                 const Weight& gate, const Weight& up,
                                                 int64_t experts, Activation out) {
  const int64_t top_k = top_k_of(selection, experts);
  const int64_t n = expert_rows(gate, experts);
  RECKON_CHECK(gate.type == up.type && gate.n == up.n && gate.k == up.k);
  RECKON_CHECK(x.rows == selection.rows && x.columns == gate.k);
  RECKON_CHECK(out.rows == x.rows * top_k && out.columns == n);
  return {.x = x.data,
          .selection = selection.data,
          .gate = gate.data,
          .up = up.data,
          .weight_type = gate.type,
          .out = out.data,
          .rows = x.rows,
          .experts = experts,
          .top_k = top_k,
          .n = n,
          .k = gate.k,
          .in_panels = gate.in_panels && up.in_panels,
          .panels_alone = gate.panels_alone || up.panels_alone,
          .gate_panels = gate.panels,
          .up_panels = up.panels};
}

ExpertMatmulCombineArgs expert_matmul_combine_args(Activation x, Activation selection,
                                                   const Weight& down, int64_t experts,
                                                   Activation out) {
  const int64_t top_k = top_k_of(selection, experts);
  const int64_t n = expert_rows(down, experts);
  RECKON_CHECK(out.rows == selection.rows && out.columns == n);
  RECKON_CHECK(x.rows == out.rows * top_k && x.columns == down.k);
  return {.x = x.data,
          .selection = selection.data,
          .down = down.data,
          .weight_type = down.type,
          .out = out.data,
          .rows = out.rows,
          .experts = experts,
          .top_k = top_k,
          .n = n,
          .k = down.k,
          .in_panels = down.in_panels,
          .panels_alone = down.panels_alone,
          .down_panels = down.panels};
}

OpCall call_of(const RouteArgs& args, Phase phase) {
  OpCall call{Op::kRoute, phase, DType::kF32, args.rows, args.experts, 0, 0};
  call.m = args.top_k;
  return call;
}

OpCall call_of(const ExpertMatmulSwigluArgs& args, Phase phase) {
  OpCall call{
      Op::kExpertMatmulSwiglu, phase, args.weight_type, args.rows, args.n, args.k, args.experts};
  call.in_panels = args.in_panels;
  call.panels_alone = args.panels_alone;
  call.m = args.top_k;
  return call;
}

OpCall call_of(const ExpertMatmulCombineArgs& args, Phase phase) {
  OpCall call{
      Op::kExpertMatmulCombine, phase, args.weight_type, args.rows, args.n, args.k, args.experts};
  call.in_panels = args.in_panels;
  call.panels_alone = args.panels_alone;
  call.m = args.top_k;
  return call;
}

}  // namespace reckon::kernels
