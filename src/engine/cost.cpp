#include "engine/cost.h"

#include <algorithm>

namespace reckon::engine {

using kernels::Cost;
using kernels::Phase;

Cost pass_cost(std::span<const PlannedCall> calls, Phase phase, int64_t first_position) {
  Cost cost;
  for (const PlannedCall& planned : calls) {
    if (planned.call.phase == phase) {
      cost += call_cost(planned.call, first_position) * planned.count;
    }
  }
  return cost;
}

Result<Cost> prefill_cost(const models::Model& model, const kernels::Planner& planner,
                          const SessionShape& shape, int64_t first_position, int64_t tokens) {
  kernels::Planner probe = planner;  // what it memoises here is of no use later
  Cost cost;
  int64_t done = 0;
  for (const int64_t rows : chunk_rows(tokens, shape.chunk)) {
    TRY_ASSIGN(const auto calls, plan_calls(model, probe, shape, {{rows}, false, false}));
    const int64_t end = rows == shape.chunk ? tokens / rows * rows : tokens;
    for (; done < end; done += rows) {
      cost += pass_cost(calls, Phase::kPrefill, first_position + done);
    }
  }
  return cost;
}

Result<Cost> decode_cost(const models::Model& model, const kernels::Planner& planner,
                         const SessionShape& shape, int64_t first_position, int64_t tokens) {
  kernels::Planner probe = planner;
  TRY_ASSIGN(const auto calls, plan_calls(model, probe, shape, {{1}, true, false}));
  Cost cost;
  for (int64_t i = 0; i < tokens; ++i) {
    cost += pass_cost(calls, Phase::kDecode, first_position + i);
  }
  return cost;
}

}  // namespace reckon::engine
