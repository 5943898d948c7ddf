// The `qwen2` family: a dense decoder with biases on Q, K and V (Qwen 2 and 2.5, and the models
// that were distilled into them).
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

// See build_model(). Sliding windows and rope scaling are errors that name the key.
[[nodiscard]] Result<std::unique_ptr<Model>> build_qwen2(const Checkpoint& checkpoint,
                                                         WeightPlacer& placer,
                                                         const BuildOptions& options);

}  // namespace reckon::models
