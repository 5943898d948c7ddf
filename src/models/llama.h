// The `llama` family: Llama 2 and 3, SmolLM2 and other plain dense decoders.
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

// See build_model(). What a checkpoint may ask for and this version does not compute (rope scaling,
// biases, sliding windows, experts) is an error that names the key.
[[nodiscard]] Result<std::unique_ptr<Model>> build_llama(const Checkpoint& checkpoint,
                                                         WeightPlacer& placer,
                                                         const BuildOptions& options);

}  // namespace reckon::models
