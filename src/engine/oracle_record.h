// Recording an oracle case anew: what a packed model is held against.
#pragma once

#include <vector>

#include "base/result.h"
#include "engine/loaded_model.h"
#include "engine/memory_plan.h"
#include "engine/oracle_case.h"

namespace reckon::engine {

// Replaces what was recorded by what `model` computes in reference numerics, at the same places, in
// a session of the shape. Errors are those of sessions.
[[nodiscard]] Status record_again(const LoadedModel& model, const SessionShape& shape,
                                  std::vector<OraclePrompt>& prompts);

}  // namespace reckon::engine
