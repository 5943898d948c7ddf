// The `qwen3` family: a dense decoder with an RMSNorm over each head of Q and K before rope.
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

// See build_model(). Sliding windows and rope scaling are errors that name the key.
[[nodiscard]] Result<std::unique_ptr<Model>> build_qwen3(const Checkpoint& checkpoint,
                                                         WeightPlacer& placer,
                                                         const BuildOptions& options);

}  // namespace reckon::models
