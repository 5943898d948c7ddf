#include "models/hybrid_weights.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "models/hybrid_names.h"
#include "tensor/dtype.h"

namespace reckon::models {
namespace {

constexpr const char* kTextRoot = "model.";
constexpr const char* kMultimodalRoot = "model.language_model.";  // beside a vision tower
constexpr const char* kDraftRoot = "mtp.";

class HybridBinder {
 public:
  HybridBinder(const Checkpoint& checkpoint, const HybridConfig& config, WeightPlacer& placer)
      : checkpoint_(checkpoint),
        config_(config),
        gguf_(checkpoint.kind() == CheckpointKind::kGguf),
        names_(gguf_ ? kHybridGgufNames : kHybridFolderNames),
        binder_(checkpoint, placer) {}

  [[nodiscard]] Result<HybridWeights> bind(const BuildOptions& options) {
    const std::string root = root_of_text();
    const std::string embedding = root + names_.embedding;
    HybridWeights weights;
    TRY_ASSIGN(weights.embedding,
               config_.head == Head::kOwn
                   ? binder_.embedding(embedding, config_.vocabulary, config_.hidden)
                   : binder_.tied_embedding(embedding, config_.vocabulary, config_.hidden));
    for (size_t l = 0; l < config_.layers.size(); ++l) {
      TRY_ASSIGN(HybridLayer layer,
                 bind_layer(fmt::format("{}{}{}.", root, names_.layers, l), config_.layers[l]));
      weights.layers.push_back(layer);
    }
    TRY_ASSIGN(weights.final_norm, norm(root + names_.final_norm, config_.hidden));
    if (config_.head == Head::kOwn) {
      TRY_ASSIGN(weights.head, binder_.matrix(names_.head, config_.vocabulary, config_.hidden));
    } else {
      weights.head = weights.embedding;
      TRY(binder_.skip_tied_head(embedding, names_.head));
    }
    if (!options.draft_head) {
      weights.draft_tensors_left_out = leave_out_draft();
    } else if (has_draft()) {
      TRY_ASSIGN(weights.draft, bind_draft());
    }
    TRY_ASSIGN(weights.vision_tensors, binder_.finish(config_.family.name));
    return weights;
  }

 private:
  [[nodiscard]] std::string root_of_text() const {
    if (gguf_) return "";
    const bool multimodal = checkpoint_.has_tensor(std::string(kMultimodalRoot) + names_.embedding);
    return multimodal ? kMultimodalRoot : kTextRoot;
  }

  // All norms are zero-centred but that of a delta net; GGUF files have added the one.
  [[nodiscard]] Result<WeightRef> norm(const std::string& name, int64_t k) {
    return binder_.norm(name, k, gguf_ ? NormWeights::kPlain : NormWeights::kZeroCentred);
  }

  [[nodiscard]] Result<HybridLayer> bind_layer(const std::string& at, HybridLayerKind kind) {
    HybridLayer layer;
    layer.kind = kind;
    TRY_ASSIGN(layer.input_norm, norm(at + names_.input_norm, config_.hidden));
    if (kind == HybridLayerKind::kAttention) {
      TRY(bind_attention(at, layer.attention));
    } else {
      TRY(bind_delta(at, layer.delta));
    }
    TRY_ASSIGN(layer.mlp_norm, norm(at + names_.mlp_norm, config_.hidden));
    TRY(bind_mlp(at, layer.mlp));
    if (config_.family.mlp == HybridMlp::kExperts) TRY(bind_experts(at, layer.experts));
    return layer;
  }

  [[nodiscard]] Status bind_attention(const std::string& at, AttentionWeights& weights) {
    const int64_t hidden = config_.hidden;
    TRY_ASSIGN(weights.q, binder_.matrix(at + names_.q, 2 * config_.q_width(), hidden));
    TRY_ASSIGN(weights.k, binder_.matrix(at + names_.k, config_.kv_width(), hidden));
    TRY_ASSIGN(weights.v, binder_.matrix(at + names_.v, config_.kv_width(), hidden));
    TRY_ASSIGN(weights.q_norm, norm(at + names_.q_norm, config_.head_dim));
    TRY_ASSIGN(weights.k_norm, norm(at + names_.k_norm, config_.head_dim));
    TRY_ASSIGN(weights.out, binder_.matrix(at + names_.attention_out, hidden, config_.q_width()));
    return {};
  }

  [[nodiscard]] Status bind_delta(const std::string& at, DeltaWeights& weights) {
    TRY(bind_delta_inputs(at, weights));
    TRY_ASSIGN(weights.conv,
               binder_.table(at + names_.conv, config_.conv_channels(), config_.conv_width));
    TRY_ASSIGN(weights.a_log, binder_.decay(at + names_.decay, config_.value_heads,
                                            gguf_ ? DecayWeights::kNegated : DecayWeights::kLog));
    TRY_ASSIGN(weights.dt_bias, binder_.vector(at + names_.dt_bias, config_.value_heads));
    TRY_ASSIGN(weights.norm, binder_.vector(at + names_.delta_norm, config_.value_dim));
    TRY_ASSIGN(weights.out,
               binder_.matrix(at + names_.delta_out, config_.hidden, config_.value_width()));
    return {};
  }

  // GGUF files of a family with interleaved inputs have parted q, k, v and z, but for old ones.
  [[nodiscard]] Status bind_delta_inputs(const std::string& at, DeltaWeights& weights) {
    const bool interleaved = config_.family.inputs == DeltaInputs::kInterleaved;
    const int64_t hidden = config_.hidden;
    if (interleaved && !(gguf_ && checkpoint_.has_tensor(at + names_.qkv))) {
      TRY(bind_interleaved_qkvz(at, weights));
    } else {
      TRY_ASSIGN(weights.qkv, binder_.matrix(at + names_.qkv, config_.conv_channels(), hidden));
      TRY_ASSIGN(weights.z, binder_.matrix(at + names_.z, config_.value_width(), hidden));
    }
    if (interleaved) return bind_interleaved_ba(at, weights);
    TRY_ASSIGN(weights.b, binder_.matrix(at + names_.b, config_.value_heads, hidden));
    TRY_ASSIGN(weights.a, binder_.matrix(at + names_.a, config_.value_heads, hidden));
    return {};
  }

  // The rows of every key head that lie `offset` after its first, of `stride` in all.
  void add_ranges(const std::string& tensor, int64_t stride, int64_t offset, int64_t count,
                  std::vector<RowRange>& ranges) const {
    for (int64_t h = 0; h < config_.key_heads; ++h) {
      ranges.push_back({tensor, config_.key_heads * stride, h * stride + offset, count});
    }
  }

  // For each key head: its q, its k, the v and the z of its value heads.
  [[nodiscard]] Status bind_interleaved_qkvz(const std::string& at, DeltaWeights& weights) {
    const std::string tensor = at + names_.qkvz;
    const int64_t key = config_.key_dim;
    const int64_t value = config_.value_heads / config_.key_heads * config_.value_dim;
    const int64_t stride = 2 * key + 2 * value;
    std::vector<RowRange> qkv, z;
    add_ranges(tensor, stride, 0, key, qkv);
    add_ranges(tensor, stride, key, key, qkv);
    add_ranges(tensor, stride, 2 * key, value, qkv);
    add_ranges(tensor, stride, 2 * key + value, value, z);
    TRY_ASSIGN(weights.qkv, binder_.rearranged(at + names_.qkv, qkv, config_.hidden));
    TRY_ASSIGN(weights.z, binder_.rearranged(at + names_.z, z, config_.hidden));
    return {};
  }

  // For each key head: b of its value heads, then their a.
  [[nodiscard]] Status bind_interleaved_ba(const std::string& at, DeltaWeights& weights) {
    const std::string tensor = at + names_.ba;
    const int64_t values = config_.value_heads / config_.key_heads;
    std::vector<RowRange> b, a;
    add_ranges(tensor, 2 * values, 0, values, b);
    add_ranges(tensor, 2 * values, values, values, a);
    TRY_ASSIGN(weights.b, binder_.rearranged(at + names_.b, b, config_.hidden));
    TRY_ASSIGN(weights.a, binder_.rearranged(at + names_.a, a, config_.hidden));
    return {};
  }

  // With experts, the matrices of the shared one.
  [[nodiscard]] Status bind_mlp(const std::string& at, MlpWeights& weights) {
    const bool shared = config_.family.mlp == HybridMlp::kExperts;
    const int64_t inner = shared ? config_.experts.shared_inner : config_.inner;
    const int64_t hidden = config_.hidden;
    TRY_ASSIGN(weights.gate, binder_.matrix(at + (shared ? names_.shared_gate_matrix : names_.gate),
                                            inner, hidden));
    TRY_ASSIGN(weights.up,
               binder_.matrix(at + (shared ? names_.shared_up : names_.up), inner, hidden));
    TRY_ASSIGN(weights.down,
               binder_.matrix(at + (shared ? names_.shared_down : names_.down), hidden, inner));
    return {};
  }

  [[nodiscard]] Status bind_experts(const std::string& at, ExpertWeights& weights) {
    const int64_t inner = config_.experts.inner;
    const int64_t hidden = config_.hidden;
    TRY_ASSIGN(weights.router, binder_.matrix(at + names_.router, config_.experts.count, hidden));
    TRY_ASSIGN(weights.shared_gate, binder_.matrix(at + names_.shared_weight, 1, hidden));
    if (checkpoint_.has_tensor(at + names_.experts_gate_up)) {
      TRY(bind_fused(at, weights));
    } else {
      TRY_ASSIGN(weights.gate, bind_expert_matrix(at, names_.experts_gate, inner, hidden));
      TRY_ASSIGN(weights.up, bind_expert_matrix(at, names_.experts_up, inner, hidden));
      TRY_ASSIGN(weights.down, bind_expert_matrix(at, names_.experts_down, hidden, inner));
    }
    return check_same_type(at, weights);
  }

  // An expert's gate and up are multiplied together.
  [[nodiscard]] Status check_same_type(const std::string& at, const ExpertWeights& weights) const {
    const DType gate = static_cast<const Weight&>(weights.gate).type;
    const DType up = static_cast<const Weight&>(weights.up).type;
    if (gate == up) return {};
    return failed(fmt::format("{}: '{}{}' is {} here; expected {}, as '{}{}' is",
                              checkpoint_.path(), at, names_.experts_up, dtype_name(up),
                              dtype_name(gate), at, names_.experts_gate));
  }

  // The [n, k] matrices of all experts: in one tensor, or one tensor each.
  [[nodiscard]] Result<WeightRef> bind_expert_matrix(const std::string& at, std::string_view name,
                                                     int64_t n, int64_t k) {
    const std::string whole = at + std::string(name);
    if (gguf_) return binder_.matrix(whole, config_.experts.count * n, k, config_.experts.count);
    const std::string_view rest = name.substr(std::string_view(names_.expert).size());
    std::vector<RowRange> ranges;
    for (int64_t e = 0; e < config_.experts.count; ++e) {
      ranges.push_back({fmt::format("{}{}{}.{}", at, names_.expert, e, rest), n, 0, n});
    }
    return binder_.rearranged(whole, ranges, k, config_.experts.count);
  }

  // [experts, gate then up, hidden] and [experts, hidden, inner].
  [[nodiscard]] Status bind_fused(const std::string& at, ExpertWeights& weights) {
    const ExpertSizes& sizes = config_.experts;
    const std::string gate_up = at + names_.experts_gate_up;
    const int64_t rows = sizes.count * 2 * sizes.inner;
    std::vector<RowRange> gate, up;
    for (int64_t e = 0; e < sizes.count; ++e) {
      gate.push_back({gate_up, rows, 2 * e * sizes.inner, sizes.inner});
      up.push_back({gate_up, rows, (2 * e + 1) * sizes.inner, sizes.inner});
    }
    TRY_ASSIGN(weights.gate,
               binder_.rearranged(at + names_.experts_gate, gate, config_.hidden, sizes.count));
    TRY_ASSIGN(weights.up,
               binder_.rearranged(at + names_.experts_up, up, config_.hidden, sizes.count));
    TRY_ASSIGN(weights.down,
               binder_.matrix(at + names_.experts_down_beside, sizes.count * config_.hidden,
                              sizes.inner, sizes.count));
    return {};
  }

  // What names of the head that drafts stand behind: in a GGUF file it is one more layer.
  [[nodiscard]] std::string draft_root() const {
    return gguf_ ? fmt::format("{}{}.", names_.layers, config_.layers.size()) : kDraftRoot;
  }

  [[nodiscard]] bool has_draft() const {
    return gguf_ ? config_.draft_layers > 0
                 : checkpoint_.has_tensor(draft_root() + names_.draft_join);
  }

  [[nodiscard]] Result<DraftWeights> bind_draft() {
    DraftWeights draft;
    const int64_t hidden = config_.hidden;
    const std::string at = draft_root();
    TRY_ASSIGN(draft.embedding_norm, norm(at + names_.draft_embedding_norm, hidden));
    TRY_ASSIGN(draft.hidden_norm, norm(at + names_.draft_hidden_norm, hidden));
    TRY_ASSIGN(draft.join, binder_.matrix(at + names_.draft_join, hidden, 2 * hidden));
    TRY_ASSIGN(draft.layer, bind_layer(gguf_ ? at : fmt::format("{}{}0.", at, names_.layers),
                                       HybridLayerKind::kAttention));
    TRY_ASSIGN(draft.norm, norm(at + names_.draft_norm, hidden));
    return draft;
  }

  [[nodiscard]] int64_t leave_out_draft() {
    if (gguf_ && !has_draft()) return 0;
    const std::string root = draft_root();
    int64_t tensors = 0;
    for (const CheckpointTensor& tensor : checkpoint_.tensors()) {
      if (!tensor.name.starts_with(root)) continue;
      binder_.skip(tensor.name);
      ++tensors;
    }
    return tensors;
  }

  const Checkpoint& checkpoint_;
  const HybridConfig& config_;
  const bool gguf_;
  const HybridNames& names_;
  WeightBinder binder_;
};

}  // namespace

Result<HybridWeights> bind_hybrid(const Checkpoint& checkpoint, const HybridConfig& config,
                                  const BuildOptions& options, WeightPlacer& placer) {
  return HybridBinder(checkpoint, config, placer).bind(options);
}

}  // namespace reckon::models
