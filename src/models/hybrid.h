// The hybrid decoder that Qwen 3.5 and Qwen3-Next share: pre-norm blocks of a gated delta net or of
// grouped-query attention with an output gate, and an MLP that is dense or made of routed experts
// beside a gated shared one; and the head that drafts tokens, where the checkpoint has one
// (hybrid_config.h, docs/models.md).
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/hybrid_config.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

// Reads the configuration and binds every tensor; the checkpoint and the placer outlive the model.
[[nodiscard]] Result<std::unique_ptr<Model>> build_hybrid(const Checkpoint& checkpoint,
                                                          const HybridFamily& family,
                                                          WeightPlacer& placer,
                                                          const BuildOptions& options);

}  // namespace reckon::models
