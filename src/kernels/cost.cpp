#include "kernels/cost.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

Cost cost_of(int64_t bytes, int64_t operations) {
  return {static_cast<uint64_t>(bytes), static_cast<uint64_t>(operations)};
}

Cost matmul_cost(const OpCall& call, int64_t weights) {
  return cost_of(weights * call.n * row_bytes(call.weight_type, call.k),
                 weights * 2 * call.rows * call.n * call.k);
}

// Of the first `rows` positions: 1 + 2 + ... + rows, or less where a window cuts.
int64_t visible_pairs(int64_t rows, int64_t window) {
  if (window == 0 || rows <= window) return rows * (rows + 1) / 2;
  return window * (window + 1) / 2 + (rows - window) * window;
}

Cost attention_cost(const OpCall& call, int64_t first_position) {
  const int64_t end = first_position + call.rows;
  const int64_t seen_before =
      call.window == 0 ? first_position : std::min(first_position, call.window - 1);
  const int64_t positions = seen_before + call.rows;
  const int64_t visible =
      visible_pairs(end, call.window) - visible_pairs(first_position, call.window);
  return cost_of(2 * call.groups * positions * row_bytes(call.weight_type, call.k),
                 4 * call.n * call.k * visible);
}

Cost causal_conv_cost(const OpCall& call) {
  return cost_of((2 * call.groups - 1) * row_bytes(DType::kF32, call.k), 0);
}

Cost delta_rule_cost(const OpCall& call) {
  const int64_t state = call.n * call.k * call.m;
  return cost_of(2 * row_bytes(DType::kF32, state), 6 * call.rows * state);
}

// A row misses an expert with a chance of 1 - m / groups.
Cost expert_cost(const OpCall& call, int64_t weights) {
  const auto experts = static_cast<double>(call.groups);
  const double missed =
      std::pow(1 - static_cast<double>(call.m) / experts, static_cast<double>(call.rows));
  const int64_t touched = std::llround(experts * (1 - missed));
  return cost_of(weights * touched * call.n * row_bytes(call.weight_type, call.k),
                 weights * 2 * call.rows * call.m * call.n * call.k);
}

}  // namespace

Cost call_cost(const OpCall& call, int64_t first_position) {
  RECKON_CHECK(first_position >= 0);
  switch (call.op) {
    case Op::kEmbedding:
      return cost_of(call.rows * row_bytes(call.weight_type, call.k), 0);
    case Op::kRmsNorm:
    case Op::kAddBias:
    case Op::kGatedRmsNorm:
    case Op::kAddRmsNorm:
      return cost_of(row_bytes(DType::kF32, call.k), 0);
    case Op::kMatmul:
    case Op::kMatmulGroup:  // n rows in all
      return matmul_cost(call, 1);
    case Op::kMatmulSwiglu:
      return matmul_cost(call, 2);
    case Op::kAttention:
    case Op::kWindowAttention:
    case Op::kRopeAttention:
      return attention_cost(call, first_position);
    case Op::kCausalConv:
      return causal_conv_cost(call);
    case Op::kGatedDeltaRule:
      return delta_rule_cost(call);
    case Op::kExpertMatmulSwiglu:
      return expert_cost(call, 2);
    case Op::kExpertMatmulCombine:
      return expert_cost(call, 1);
    case Op::kSplitGate:
    case Op::kSigmoidGate:
    case Op::kGatedAdd:
    case Op::kConcat:
    case Op::kRoute:
    case Op::kRope:
    case Op::kSwiglu:
    case Op::kAdd:
    case Op::kGeglu:
    case Op::kScale:
    case Op::kSample:
      return {};
  }
  return {};
}

}  // namespace reckon::kernels
