// The weights of a hybrid decoder and how they are bound: layouts of Hugging Face folders and of
// GGUF files (names: hybrid_names.h). Those of GGUF files differ: norms have their one added, the
// decay is -exp(A_log), all experts are in one tensor, the head that drafts is one more block, and
// Qwen 3.5's value heads lie key head after key head in turn (kernels::KeyHeadOrder::kTiled).
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/hybrid_config.h"
#include "models/model.h"
#include "models/weight_placer.h"
#include "models/weights.h"

namespace reckon::models {

struct AttentionWeights {
  WeightRef q;  // [heads, query then gate, head_dim] rows
  WeightRef k, v, q_norm, k_norm, out;
};

struct DeltaWeights {
  WeightRef qkv;   // q, k, v of all heads, one after another
  WeightRef z;     // the gate of the norm behind it
  WeightRef b, a;  // [value_heads]
  WeightRef conv;  // [channels, width]
  WeightRef a_log, dt_bias, norm, out;
};

struct MlpWeights {
  WeightRef gate, up, down;  // with experts: of the shared one
};

// The matrices of expert e are rows e * n ... of each.
struct ExpertWeights {
  WeightRef router;       // [experts, hidden]
  WeightRef gate, up;     // [experts * inner, hidden]
  WeightRef down;         // [experts * hidden, inner]
  WeightRef shared_gate;  // [1, hidden]
};

struct HybridLayer {
  HybridLayerKind kind = HybridLayerKind::kDelta;
  WeightRef input_norm, mlp_norm;
  AttentionWeights attention;  // those of the kind are set
  DeltaWeights delta;
  MlpWeights mlp;
  ExpertWeights experts;  // where the family has them
};

// The head that drafts tokens (Gloeckle et al. 2024, arXiv:2404.19737; DeepSeek-V3's form).
struct DraftWeights {
  WeightRef embedding_norm, hidden_norm;
  WeightRef join;     // [hidden, 2 * hidden]
  HybridLayer layer;  // full attention
  WeightRef norm;
};

struct HybridWeights {
  WeightRef embedding, final_norm, head;
  std::vector<HybridLayer> layers;
  std::optional<DraftWeights> draft;   // where the checkpoint has one and it is wanted
  int64_t draft_tensors_left_out = 0;  // where it is not
  int64_t vision_tensors = 0;          // that were skipped
};

// Binds every tensor of the checkpoint and fails where one is missing, of the wrong shape or type,
// or left over. The checkpoint and the placer outlive the weights.
[[nodiscard]] Result<HybridWeights> bind_hybrid(const Checkpoint& checkpoint,
                                                const HybridConfig& config,
                                                const BuildOptions& options, WeightPlacer& placer);

}  // namespace reckon::models
