#include "models/hybrid_weights.h"

#include <fmt/format.h>

#include <string>

namespace reckon::models {
namespace {

constexpr const char* kTextPrefix = "model.";
constexpr const char* kMultimodalPrefix = "model.language_model.";  // beside a vision tower

class HybridBinder {
 public:
  HybridBinder(const Checkpoint& checkpoint, const HybridConfig& config, WeightPlacer& placer)
      : checkpoint_(checkpoint), config_(config), binder_(checkpoint, placer) {}

  [[nodiscard]] Result<HybridWeights> bind(const BuildOptions& options) {
    const bool multimodal =
        checkpoint_.has_tensor(std::string(kMultimodalPrefix) + "embed_tokens.weight");
    const std::string at = multimodal ? kMultimodalPrefix : kTextPrefix;
    const std::string embedding = at + "embed_tokens.weight";
    HybridWeights weights;
    TRY_ASSIGN(weights.embedding,
               config_.head == Head::kOwn
                   ? binder_.embedding(embedding, config_.vocabulary, config_.hidden)
                   : binder_.tied_embedding(embedding, config_.vocabulary, config_.hidden));
    for (size_t l = 0; l < config_.layers.size(); ++l) {
      TRY_ASSIGN(HybridLayer layer,
                 bind_layer(fmt::format("{}layers.{}.", at, l), config_.layers[l]));
      weights.layers.push_back(layer);
    }
    TRY_ASSIGN(weights.final_norm, norm(at + "norm.weight", config_.hidden));
    if (config_.head == Head::kOwn) {
      TRY_ASSIGN(weights.head,
                 binder_.matrix("lm_head.weight", config_.vocabulary, config_.hidden));
    } else {
      weights.head = weights.embedding;
      TRY(binder_.skip_tied_head(embedding, "lm_head.weight"));
    }
    if (!options.draft_head) {
      weights.draft_tensors_left_out = leave_out_draft();
    } else if (checkpoint_.has_tensor("mtp.fc.weight")) {
      TRY_ASSIGN(weights.draft, bind_draft());
    }
    TRY_ASSIGN(weights.vision_tensors, binder_.finish(config_.family.name));
    return weights;
  }

 private:
  // All norms are zero-centred but that of a delta net.
  [[nodiscard]] Result<WeightRef> norm(const std::string& name, int64_t k) {
    return binder_.norm(name, k, NormWeights::kZeroCentred);
  }

  [[nodiscard]] Result<HybridLayer> bind_layer(const std::string& at, HybridLayerKind kind) {
    HybridLayer layer;
    layer.kind = kind;
    TRY_ASSIGN(layer.input_norm, norm(at + "input_layernorm.weight", config_.hidden));
    if (kind == HybridLayerKind::kAttention) {
      TRY(bind_attention(at + "self_attn.", layer.attention));
    } else {
      TRY(bind_delta(at + "linear_attn.", layer.delta));
    }
    TRY_ASSIGN(layer.mlp_norm, norm(at + "post_attention_layernorm.weight", config_.hidden));
    if (config_.family.mlp == HybridMlp::kDense) {
      TRY(bind_mlp(at + "mlp.", config_.inner, layer.mlp));
    } else {
      TRY(bind_mlp(at + "mlp.shared_expert.", config_.experts.shared_inner, layer.mlp));
      TRY(bind_experts(at + "mlp.", layer.experts));
    }
    return layer;
  }

  [[nodiscard]] Status bind_attention(const std::string& at, AttentionWeights& weights) {
    const int64_t hidden = config_.hidden;
    TRY_ASSIGN(weights.q, binder_.matrix(at + "q_proj.weight", 2 * config_.q_width(), hidden));
    TRY_ASSIGN(weights.k, binder_.matrix(at + "k_proj.weight", config_.kv_width(), hidden));
    TRY_ASSIGN(weights.v, binder_.matrix(at + "v_proj.weight", config_.kv_width(), hidden));
    TRY_ASSIGN(weights.q_norm, norm(at + "q_norm.weight", config_.head_dim));
    TRY_ASSIGN(weights.k_norm, norm(at + "k_norm.weight", config_.head_dim));
    TRY_ASSIGN(weights.out, binder_.matrix(at + "o_proj.weight", hidden, config_.q_width()));
    return {};
  }

  [[nodiscard]] Status bind_delta(const std::string& at, DeltaWeights& weights) {
    if (config_.family.inputs == DeltaInputs::kApart) {
      const int64_t hidden = config_.hidden;
      TRY_ASSIGN(weights.qkv,
                 binder_.matrix(at + "in_proj_qkv.weight", config_.conv_channels(), hidden));
      TRY_ASSIGN(weights.z, binder_.matrix(at + "in_proj_z.weight", config_.value_width(), hidden));
      TRY_ASSIGN(weights.b, binder_.matrix(at + "in_proj_b.weight", config_.value_heads, hidden));
      TRY_ASSIGN(weights.a, binder_.matrix(at + "in_proj_a.weight", config_.value_heads, hidden));
    } else {
      TRY(bind_interleaved(at, weights));
    }
    TRY_ASSIGN(weights.conv,
               binder_.table(at + "conv1d.weight", config_.conv_channels(), config_.conv_width));
    TRY_ASSIGN(weights.a_log, binder_.vector(at + "A_log", config_.value_heads));
    TRY_ASSIGN(weights.dt_bias, binder_.vector(at + "dt_bias", config_.value_heads));
    TRY_ASSIGN(weights.norm, binder_.vector(at + "norm.weight", config_.value_dim));
    TRY_ASSIGN(weights.out,
               binder_.matrix(at + "out_proj.weight", config_.hidden, config_.value_width()));
    return {};
  }

  // For each key head: its q, its k, the v and the z of its value heads; and their b, then their a.
  [[nodiscard]] Status bind_interleaved(const std::string& at, DeltaWeights& weights) {
    const std::string qkvz = at + "in_proj_qkvz.weight";
    const std::string ba = at + "in_proj_ba.weight";
    const int64_t values = config_.value_heads / config_.key_heads;  // value heads of a key head
    const int64_t key = config_.key_dim;
    const int64_t value = values * config_.value_dim;
    // The rows of every key head that lie `offset` after its first, of `stride` in all.
    const auto ranges = [&](const std::string& tensor, int64_t stride, int64_t offset,
                            int64_t count, std::vector<RowRange>& into) {
      for (int64_t h = 0; h < config_.key_heads; ++h) {
        into.push_back({tensor, config_.key_heads * stride, h * stride + offset, count});
      }
    };
    const int64_t stride = 2 * key + 2 * value;
    std::vector<RowRange> qkv, z, b, a;
    ranges(qkvz, stride, 0, key, qkv);
    ranges(qkvz, stride, key, key, qkv);
    ranges(qkvz, stride, 2 * key, value, qkv);
    ranges(qkvz, stride, 2 * key + value, value, z);
    ranges(ba, 2 * values, 0, values, b);
    ranges(ba, 2 * values, values, values, a);
    const int64_t hidden = config_.hidden;
    TRY_ASSIGN(weights.qkv, binder_.rearranged(at + "in_proj_qkv.weight", qkv, hidden));
    TRY_ASSIGN(weights.z, binder_.rearranged(at + "in_proj_z.weight", z, hidden));
    TRY_ASSIGN(weights.b, binder_.rearranged(at + "in_proj_b.weight", b, hidden));
    TRY_ASSIGN(weights.a, binder_.rearranged(at + "in_proj_a.weight", a, hidden));
    return {};
  }

  [[nodiscard]] Status bind_mlp(const std::string& at, int64_t inner, MlpWeights& weights) {
    TRY_ASSIGN(weights.gate, binder_.matrix(at + "gate_proj.weight", inner, config_.hidden));
    TRY_ASSIGN(weights.up, binder_.matrix(at + "up_proj.weight", inner, config_.hidden));
    TRY_ASSIGN(weights.down, binder_.matrix(at + "down_proj.weight", config_.hidden, inner));
    return {};
  }

  [[nodiscard]] Status bind_experts(const std::string& at, ExpertWeights& weights) {
    const ExpertSizes& sizes = config_.experts;
    TRY_ASSIGN(weights.router, binder_.matrix(at + "gate.weight", sizes.count, config_.hidden));
    TRY_ASSIGN(weights.shared_gate,
               binder_.matrix(at + "shared_expert_gate.weight", 1, config_.hidden));
    const std::string experts = at + "experts.";
    if (checkpoint_.has_tensor(experts + "gate_up_proj")) return bind_fused(experts, weights);
    TRY_ASSIGN(weights.gate, bind_each(experts, "gate_proj", sizes.inner, config_.hidden));
    TRY_ASSIGN(weights.up, bind_each(experts, "up_proj", sizes.inner, config_.hidden));
    TRY_ASSIGN(weights.down, bind_each(experts, "down_proj", config_.hidden, sizes.inner));
    return {};
  }

  // One tensor an expert.
  [[nodiscard]] Result<WeightRef> bind_each(const std::string& at, const char* name, int64_t n,
                                            int64_t k) {
    std::vector<RowRange> ranges;
    for (int64_t e = 0; e < config_.experts.count; ++e) {
      ranges.push_back({fmt::format("{}{}.{}.weight", at, e, name), n, 0, n});
    }
    return binder_.rearranged(fmt::format("{}{}.weight", at, name), ranges, k);
  }

  // [experts, gate then up, hidden] and [experts, hidden, inner].
  [[nodiscard]] Status bind_fused(const std::string& at, ExpertWeights& weights) {
    const ExpertSizes& sizes = config_.experts;
    const std::string gate_up = at + "gate_up_proj";
    const int64_t rows = sizes.count * 2 * sizes.inner;
    std::vector<RowRange> gate, up;
    for (int64_t e = 0; e < sizes.count; ++e) {
      gate.push_back({gate_up, rows, 2 * e * sizes.inner, sizes.inner});
      up.push_back({gate_up, rows, (2 * e + 1) * sizes.inner, sizes.inner});
    }
    TRY_ASSIGN(weights.gate, binder_.rearranged(at + "gate_proj.weight", gate, config_.hidden));
    TRY_ASSIGN(weights.up, binder_.rearranged(at + "up_proj.weight", up, config_.hidden));
    TRY_ASSIGN(weights.down,
               binder_.matrix(at + "down_proj", sizes.count * config_.hidden, sizes.inner));
    return {};
  }

  [[nodiscard]] Result<DraftWeights> bind_draft() {
    DraftWeights draft;
    const int64_t hidden = config_.hidden;
    TRY_ASSIGN(draft.embedding_norm, norm("mtp.pre_fc_norm_embedding.weight", hidden));
    TRY_ASSIGN(draft.hidden_norm, norm("mtp.pre_fc_norm_hidden.weight", hidden));
    TRY_ASSIGN(draft.join, binder_.matrix("mtp.fc.weight", hidden, 2 * hidden));
    TRY_ASSIGN(draft.layer, bind_layer("mtp.layers.0.", HybridLayerKind::kAttention));
    TRY_ASSIGN(draft.norm, norm("mtp.norm.weight", hidden));
    return draft;
  }

  [[nodiscard]] int64_t leave_out_draft() {
    int64_t tensors = 0;
    for (const CheckpointTensor& tensor : checkpoint_.tensors()) {
      if (!tensor.name.starts_with("mtp.")) continue;
      binder_.skip(tensor.name);
      ++tensors;
    }
    return tensors;
  }

  const Checkpoint& checkpoint_;
  const HybridConfig& config_;
  WeightBinder binder_;
};

}  // namespace

Result<HybridWeights> bind_hybrid(const Checkpoint& checkpoint, const HybridConfig& config,
                                  const BuildOptions& options, WeightPlacer& placer) {
  return HybridBinder(checkpoint, config, placer).bind(options);
}

}  // namespace reckon::models
