#include "kernels/cost.h"

#include <algorithm>

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

}  // namespace

Cost call_cost(const OpCall& call, int64_t first_position) {
  RECKON_CHECK(first_position >= 0);
  switch (call.op) {
    case Op::kEmbedding:
      return cost_of(call.rows * row_bytes(call.weight_type, call.k), 0);
    case Op::kRmsNorm:
    case Op::kAddBias:
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
