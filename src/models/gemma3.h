// The gemma3 family: Gemma 3's text models (arXiv:2503.19786).
//
// Embeddings times sqrt(hidden), in float32 as transformers computes them for float32 models; norms
// before and behind attention and MLP, and over each head of Q and K; a GELU gate; and five layers
// that see a window, with a rope base of their own, for each one that sees everything.
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"
#include "models/weight_placer.h"

namespace reckon::models {

// Errors as build_dense() (dense.h); and, naming the key, for soft caps and attention that is not
// causal, which no Gemma 3 text model has.
[[nodiscard]] Result<std::unique_ptr<Model>> build_gemma3(const Checkpoint& checkpoint,
                                                          WeightPlacer& placer,
                                                          const BuildOptions& options);

}  // namespace reckon::models
