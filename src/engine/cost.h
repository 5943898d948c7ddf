// What a prefill or a decode must move and compute at least (kernels/cost.h), from the plan alone:
// nothing is run. A time over these and over the machine's bounds (kernels/bounds.h) says how far
// from the floor it is.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "engine/memory_plan.h"
#include "kernels/cost.h"

namespace reckon::engine {

// One pass at `first_position`: the calls of `phase`, each as often as it is planned.
[[nodiscard]] kernels::Cost pass_cost(std::span<const PlannedCall> calls, kernels::Phase phase,
                                      int64_t first_position);

// A prefill of `tokens` behind `first_position` others, in the chunks of the shape. `shape` is
// resolved; errors as for plan_session().
[[nodiscard]] Result<kernels::Cost> prefill_cost(const models::Model& model,
                                                 const kernels::Planner& planner,
                                                 const SessionShape& shape, int64_t first_position,
                                                 int64_t tokens);

// A decode of `tokens`, one by one, the first at `first_position`.
[[nodiscard]] Result<kernels::Cost> decode_cost(const models::Model& model,
                                                const kernels::Planner& planner,
                                                const SessionShape& shape, int64_t first_position,
                                                int64_t tokens);

}  // namespace reckon::engine
