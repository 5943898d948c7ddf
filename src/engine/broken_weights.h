// Says what is wrong where a model gives logits that are no numbers.
#pragma once

#include "base/result.h"
#include "engine/loaded_model.h"
#include "kernels/kernel.h"

namespace reckon::engine {

// `error`, with the model's file; and in its place the first weight of the checkpoint that is not
// finite, where there is one. Reads every weight: for the way out only.
[[nodiscard]] Error explain_not_finite(const LoadedModel& model, const Error& error);
// The pick of such logits, or why there is none as above.
[[nodiscard]] Result<kernels::Pick> explained(const LoadedModel& model,
                                              const Result<kernels::Pick>& pick);

}  // namespace reckon::engine
