// Qwen3-Next: a hybrid decoder with routed experts, whose delta nets have fused inputs.
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

[[nodiscard]] Result<std::unique_ptr<Model>> build_qwen3_next(const Checkpoint& checkpoint,
                                                              WeightPlacer& placer,
                                                              const BuildOptions& options);

}  // namespace reckon::models
