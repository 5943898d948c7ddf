#include "models/qwen2.h"

#include <utility>

#include "models/dense.h"
#include "models/dense_config.h"

namespace reckon::models {

Result<std::unique_ptr<Model>> build_qwen2(const Checkpoint& checkpoint, WeightPlacer& placer,
                                           const BuildOptions& /*options*/) {
  TRY_ASSIGN(DenseConfig config,
             read_dense_config(checkpoint, {.name = "qwen2",
                                            .qk_norm = QkNorm::kNone,
                                            .gguf_pairing = kernels::RopePairing::kHalf,
                                            .qkv_bias = QkvBias::kAdded}));
  return build_dense(checkpoint, std::move(config), placer);
}

}  // namespace reckon::models
