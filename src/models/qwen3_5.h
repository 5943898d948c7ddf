// Qwen 3.5: a hybrid decoder; for text its multi-section rope is a plain one over the first quarter
// of each head. `qwen3_5` has dense MLPs, `qwen3_5_moe` routed experts.
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

[[nodiscard]] Result<std::unique_ptr<Model>> build_qwen3_5(const Checkpoint& checkpoint,
                                                           WeightPlacer& placer,
                                                           const BuildOptions& options);
[[nodiscard]] Result<std::unique_ptr<Model>> build_qwen3_5_moe(const Checkpoint& checkpoint,
                                                               WeightPlacer& placer,
                                                               const BuildOptions& options);

}  // namespace reckon::models
