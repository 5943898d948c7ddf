#include "models/hybrid_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "models/config_checks.h"
#include "models/hybrid_config_checks.h"

namespace reckon::models {
namespace {

constexpr std::array<std::string_view, 1> kExpertKeys{"num_experts"};
constexpr int64_t kInterval = 4;  // every fourth layer attends, where the file is silent
constexpr double kRopeShare = 0.25;

Status expect_true(const Checkpoint& checkpoint, std::string_view key) {
  TRY_ASSIGN(const bool value, checkpoint.boolean_or(key, true));
  if (!value) return bad_key(checkpoint, key, "is false; expected true");
  return {};
}

Status check_keys(const Checkpoint& checkpoint, const HybridFamily& family) {
  std::span<const std::string_view> own;
  if (family.mlp == HybridMlp::kExperts) own = kExpertKeys;
  TRY(check_foreign_keys(checkpoint, own));
  TRY(check_plain_rope(checkpoint));
  for (const std::string_view key :
       {"attention_bias", "mlp_bias", "use_sliding_window", "mtp_use_dedicated_embeddings"}) {
    TRY(refuse_true(checkpoint, key));
  }
  TRY(expect_true(checkpoint, "attn_output_gate"));
  TRY_ASSIGN(const std::string activation, checkpoint.string_or("hidden_act", "silu"));
  if (activation != "silu") {
    return bad_key(checkpoint, "hidden_act", fmt::format("is '{}'; expected 'silu'", activation));
  }
  TRY_ASSIGN(const int64_t heads, checkpoint.integer_or("mtp_num_hidden_layers", 1));
  if (heads < 0 || heads > 1) {
    return bad_key(checkpoint, "mtp_num_hidden_layers",
                   fmt::format("is {}; expected 0 or 1", heads));
  }
  return {};
}

// Every layer has experts.
Status check_expert_layers(const Checkpoint& checkpoint) {
  TRY_ASSIGN(const int64_t step, checkpoint.integer_or("decoder_sparse_step", 1));
  if (step != 1) {
    return bad_key(checkpoint, "decoder_sparse_step", fmt::format("is {}; expected 1", step));
  }
  if (!checkpoint.has("mlp_only_layers")) return {};
  TRY_ASSIGN(const std::vector<int64_t> dense, checkpoint.integers("mlp_only_layers"));
  if (dense.empty()) return {};
  return bad_key(checkpoint, "mlp_only_layers", "names layers without experts; expected none");
}

Status read_experts(const Checkpoint& checkpoint, ExpertSizes& experts) {
  TRY(check_expert_layers(checkpoint));
  TRY_ASSIGN(experts.count, checkpoint.integer("num_experts"));
  TRY_ASSIGN(experts.top_k, checkpoint.integer("num_experts_per_tok"));
  TRY_ASSIGN(experts.inner, checkpoint.integer("moe_intermediate_size"));
  TRY_ASSIGN(experts.shared_inner, checkpoint.integer("shared_expert_intermediate_size"));
  TRY_ASSIGN(const bool normalised, checkpoint.boolean_or("norm_topk_prob", true));
  experts.weights = normalised ? kernels::RouteWeights::kOfSelected : kernels::RouteWeights::kOfAll;
  return check_hybrid_experts(checkpoint, experts);
}

Result<std::vector<HybridLayerKind>> layers_by_interval(const Checkpoint& checkpoint,
                                                        int64_t count) {
  TRY_ASSIGN(const int64_t interval, checkpoint.integer_or("full_attention_interval", kInterval));
  if (interval < 1) {
    return bad_key(checkpoint, "full_attention_interval",
                   fmt::format("is {}; expected 1 or more", interval));
  }
  std::vector<HybridLayerKind> layers;
  for (int64_t l = 1; l <= count; ++l) {
    layers.push_back(l % interval == 0 ? HybridLayerKind::kAttention : HybridLayerKind::kDelta);
  }
  return layers;
}

Result<std::vector<HybridLayerKind>> read_layers(const Checkpoint& checkpoint) {
  TRY_ASSIGN(const int64_t count, checkpoint.integer("num_hidden_layers"));
  TRY(check_hybrid_layer_count(checkpoint, count));
  if (!checkpoint.has("layer_types")) return layers_by_interval(checkpoint, count);
  TRY_ASSIGN(const std::vector<std::string> types, checkpoint.strings("layer_types"));
  if (static_cast<int64_t>(types.size()) != count) {
    return bad_key(checkpoint, "layer_types",
                   fmt::format("has {} entries for {} layers", types.size(), count));
  }
  std::vector<HybridLayerKind> layers;
  for (const std::string& type : types) {
    if (type != "linear_attention" && type != "full_attention") {
      return bad_key(checkpoint, "layer_types",
                     fmt::format("holds '{}'; expected linear_attention or full_attention", type));
    }
    layers.push_back(type == "full_attention" ? HybridLayerKind::kAttention
                                              : HybridLayerKind::kDelta);
  }
  return layers;
}

Status read_rope(const Checkpoint& checkpoint, HybridConfig& config) {
  TRY_ASSIGN(config.rope_base, checkpoint.number_or("rope_theta", 10000.0));
  TRY(check_rope_base(checkpoint, config.rope_base));
  TRY_ASSIGN(const double share, checkpoint.number_or("partial_rotary_factor", kRopeShare));
  if (share > 0 && share <= 1) {
    config.rope_dims = static_cast<int64_t>(static_cast<double>(config.head_dim) * share);
  }
  if (config.rope_dims >= 2 && config.rope_dims % 2 == 0) return {};
  return bad_key(checkpoint, "partial_rotary_factor",
                 fmt::format("is {}; expected a share of {} that is an even number of dimensions",
                             share, config.head_dim));
}

Status read_attention(const Checkpoint& checkpoint, HybridConfig& config) {
  TRY_ASSIGN(config.heads, checkpoint.integer("num_attention_heads"));
  TRY_ASSIGN(config.kv_heads, checkpoint.integer("num_key_value_heads"));
  TRY_ASSIGN(config.head_dim, checkpoint.integer("head_dim"));
  TRY(check_hybrid_attention(checkpoint, config));
  return read_rope(checkpoint, config);
}

Status read_delta(const Checkpoint& checkpoint, HybridConfig& config) {
  TRY_ASSIGN(config.key_heads, checkpoint.integer("linear_num_key_heads"));
  TRY_ASSIGN(config.value_heads, checkpoint.integer("linear_num_value_heads"));
  TRY_ASSIGN(config.key_dim, checkpoint.integer("linear_key_head_dim"));
  TRY_ASSIGN(config.value_dim, checkpoint.integer("linear_value_head_dim"));
  TRY_ASSIGN(config.conv_width, checkpoint.integer("linear_conv_kernel_dim"));
  TRY(check_hybrid_delta(checkpoint, config));
  if (config.conv_width < 2) {
    return bad_key(checkpoint, "linear_conv_kernel_dim", "is 1; expected 2 to 64");
  }
  return {};
}

Status read_sizes(const Checkpoint& checkpoint, HybridConfig& config) {
  TRY_ASSIGN(config.hidden, checkpoint.integer("hidden_size"));
  TRY_ASSIGN(config.vocabulary, checkpoint.integer("vocab_size"));
  TRY_ASSIGN(config.context_limit, checkpoint.integer("max_position_embeddings"));
  TRY_ASSIGN(const double epsilon, checkpoint.number("rms_norm_eps"));
  config.epsilon = static_cast<float>(epsilon);
  TRY(check_hybrid_sizes(checkpoint, config));
  TRY_ASSIGN(const bool tied, checkpoint.boolean_or("tie_word_embeddings", false));
  config.head = tied ? Head::kTied : Head::kOwn;
  return {};
}

Status read_mlp(const Checkpoint& checkpoint, HybridConfig& config) {
  if (config.family.mlp == HybridMlp::kExperts) return read_experts(checkpoint, config.experts);
  TRY_ASSIGN(config.inner, checkpoint.integer("intermediate_size"));
  return check_hybrid_mlp(checkpoint, config);
}

}  // namespace

int64_t HybridConfig::layers_of(HybridLayerKind kind) const {
  return std::ranges::count(layers, kind);
}

Result<HybridConfig> read_hybrid_config(const Checkpoint& checkpoint, const HybridFamily& family) {
  HybridConfig config;
  config.family = family;
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    TRY(read_hybrid_gguf(checkpoint, config));
    return config;
  }
  TRY(check_keys(checkpoint, family));
  config.name = checkpoint.display_name();
  TRY(read_sizes(checkpoint, config));
  TRY_ASSIGN(config.layers, read_layers(checkpoint));
  TRY(read_attention(checkpoint, config));
  TRY(read_delta(checkpoint, config));
  TRY(read_mlp(checkpoint, config));
  return config;
}

}  // namespace reckon::models
