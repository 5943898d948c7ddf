#include "models/qwen3_next.h"

#include "models/hybrid.h"

namespace reckon::models {

Result<std::unique_ptr<Model>> build_qwen3_next(const Checkpoint& checkpoint, WeightPlacer& placer,
                                                const BuildOptions& options) {
  return build_hybrid(
      checkpoint,
      {.name = "qwen3_next", .mlp = HybridMlp::kExperts, .inputs = DeltaInputs::kInterleaved},
      placer, options);
}

}  // namespace reckon::models
