// What the readers of a hybrid's configuration, from a config.json and from a GGUF file's metadata,
// share: checks of what they read. Errors name the file and what was expected.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/hybrid_config.h"

namespace reckon::models {

// Of a GGUF file of the config's family; hybrid_config_gguf.cpp.
[[nodiscard]] Status read_hybrid_gguf(const Checkpoint& checkpoint, HybridConfig& config);

// Widths, vocabulary, context length, epsilon.
[[nodiscard]] Status check_hybrid_sizes(const Checkpoint& checkpoint, const HybridConfig& config);
[[nodiscard]] Status check_hybrid_layer_count(const Checkpoint& checkpoint, int64_t layers);
// Heads and their size.
[[nodiscard]] Status check_hybrid_attention(const Checkpoint& checkpoint,
                                            const HybridConfig& config);
[[nodiscard]] Status check_hybrid_delta(const Checkpoint& checkpoint, const HybridConfig& config);
[[nodiscard]] Status check_hybrid_mlp(const Checkpoint& checkpoint, const HybridConfig& config);
[[nodiscard]] Status check_hybrid_experts(const Checkpoint& checkpoint, const ExpertSizes& experts);

}  // namespace reckon::models
