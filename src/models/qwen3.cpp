#include "models/qwen3.h"

#include <utility>

#include "models/dense.h"
#include "models/dense_config.h"

namespace reckon::models {

Result<std::unique_ptr<Model>> build_qwen3(const Checkpoint& checkpoint, WeightPlacer& placer,
                                           const BuildOptions& /*options*/) {
  TRY_ASSIGN(DenseConfig config,
             read_dense_config(checkpoint, {.name = "qwen3",
                                            .qk_norm = QkNorm::kPerHead,
                                            .gguf_pairing = kernels::RopePairing::kHalf}));
  return build_dense(checkpoint, std::move(config), placer);
}

}  // namespace reckon::models
