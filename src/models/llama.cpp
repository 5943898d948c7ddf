#include "models/llama.h"

#include <utility>

#include "models/dense.h"
#include "models/dense_config.h"

namespace reckon::models {

Result<std::unique_ptr<Model>> build_llama(const Checkpoint& checkpoint, WeightPlacer& placer,
                                           const BuildOptions& /*options*/) {
  // llama.cpp's converter permutes the rows of Q and K of each head of this family, so that the
  // two elements that rope turns together lie side by side.
  TRY_ASSIGN(DenseConfig config,
             read_dense_config(checkpoint, {.name = "llama",
                                            .qk_norm = QkNorm::kNone,
                                            .gguf_pairing = kernels::RopePairing::kAdjacent}));
  return build_dense(checkpoint, std::move(config), placer);
}

}  // namespace reckon::models
