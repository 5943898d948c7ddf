// Recording an oracle case anew, what a packed model is held against, and what it does not hold.
#pragma once

#include <vector>

#include "base/result.h"
#include "engine/loaded_model.h"
#include "engine/memory_plan.h"
#include "engine/oracle_case.h"
#include "engine/selections.h"

namespace reckon::engine {

// Replaces what was recorded by what `model` computes in reference numerics, at the same places, in
// a session of the shape. Errors are those of sessions.
[[nodiscard]] Status record_again(const LoadedModel& model, const SessionShape& shape,
                                  std::vector<OraclePrompt>& prompts);

// The experts that the rows of each prompt, its recorded continuation and the drafts behind it are
// routed to in reference numerics, in a session of the shape.
[[nodiscard]] Result<std::vector<Selections>> record_selections(
    const LoadedModel& model, const SessionShape& shape, const std::vector<OraclePrompt>& prompts);

}  // namespace reckon::engine
