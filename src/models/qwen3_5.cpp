#include "models/qwen3_5.h"

#include "models/hybrid.h"

namespace reckon::models {

Result<std::unique_ptr<Model>> build_qwen3_5(const Checkpoint& checkpoint, WeightPlacer& placer,
                                             const BuildOptions& options) {
  return build_hybrid(checkpoint, {.name = "qwen3_5", .mlp = HybridMlp::kDense}, placer, options);
}

Result<std::unique_ptr<Model>> build_qwen3_5_moe(const Checkpoint& checkpoint, WeightPlacer& placer,
                                                 const BuildOptions& options) {
  return build_hybrid(checkpoint, {.name = "qwen3_5_moe", .mlp = HybridMlp::kExperts}, placer,
                      options);
}

}  // namespace reckon::models
