#include "kernels/cost.h"

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

Cost attention_cost(const OpCall& call, int64_t first_position) {
  const int64_t positions = first_position + call.rows;
  // Sum of first_position + 1 ... first_position + rows.
  const int64_t visible = call.rows * first_position + call.rows * (call.rows + 1) / 2;
  return cost_of(2 * call.groups * positions * row_bytes(call.weight_type, call.k),
                 4 * call.n * call.k * visible);
}

}  // namespace

Cost call_cost(const OpCall& call, int64_t first_position) {
  RECKON_CHECK(first_position >= 0);
  switch (call.op) {
    case Op::kEmbedding:
      return cost_of(call.rows * row_bytes(call.weight_type, call.k), 0);
    case Op::kRmsNorm:
    case Op::kAddRmsNorm:
      return cost_of(row_bytes(DType::kF32, call.k), 0);
    case Op::kMatmul:
    case Op::kMatmulGroup:  // n rows in all
      return matmul_cost(call, 1);
    case Op::kMatmulSwiglu:
      return matmul_cost(call, 2);
    case Op::kAttention:
    case Op::kRopeAttention:
      return attention_cost(call, first_position);
    case Op::kRope:
    case Op::kSwiglu:
    case Op::kAdd:
    case Op::kSample:
      return {};
  }
  return {};
}

}  // namespace reckon::kernels
