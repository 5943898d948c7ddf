// The dense decoder that llama, qwen2, qwen3 and gemma3 share: pre-norm blocks of grouped-query
// attention with rope and a gated MLP. Families differ in biases of Q, K and V, an RMSNorm over
// each head of Q and K, windows, the gate's activation, and norms behind attention and MLP
// (dense_config.h).
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/dense_config.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

// Binds every tensor of the checkpoint (names by its kind) and fails where one is missing, of the
// wrong shape or type, or left over. The checkpoint and the placer outlive the model.
[[nodiscard]] Result<std::unique_ptr<Model>> build_dense(const Checkpoint& checkpoint,
                                                         DenseConfig config, WeightPlacer& placer);

}  // namespace reckon::models
