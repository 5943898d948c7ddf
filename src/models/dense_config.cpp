#include "models/dense_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "models/config_checks.h"

namespace reckon::models {
namespace {

Status check_sizes(const Checkpoint& checkpoint, const DenseConfig& config) {
  if (config.head_dim == 0 && config.heads > 0 && config.hidden % config.heads != 0) {
    return failed(fmt::format("{}: a hidden size of {} is not a multiple of {} attention heads",
                              checkpoint.path(), config.hidden, config.heads));
  }
  const std::array<SizeLimit, 8> limits{{
      {"layers", config.layers, 4096},
      {"hidden size", config.hidden, int64_t{1} << 20},
      {"attention heads", config.heads, 1 << 14},
      {"KV heads", config.kv_heads, 1 << 14},
      {"head size", config.head_dim, 1 << 14},
      {"MLP width", config.inner, int64_t{1} << 22},
      {"vocabulary", config.vocabulary, int64_t{1} << 24},
      {"context length", config.context_limit, int64_t{1} << 31},
  }};
  TRY(check_limits(checkpoint, limits));
  if (config.heads % config.kv_heads != 0) {
    return failed(fmt::format("{}: {} attention heads are not a multiple of {} KV heads",
                              checkpoint.path(), config.heads, config.kv_heads));
  }
  if (config.head_dim % 2 != 0) {
    return failed(fmt::format("{}: a head size of {} is odd, but rope turns pairs",
                              checkpoint.path(), config.head_dim));
  }
  TRY(check_epsilon(checkpoint, config.epsilon));
  return check_rope_base(checkpoint, config.rope_base);
}

// hidden / heads, where the checkpoint does not name a head size; 0 (refused later) where the
// division makes no sense.
int64_t default_head_dim(const DenseConfig& config) {
  return config.heads > 0 && config.hidden % config.heads == 0 ? config.hidden / config.heads : 0;
}

// ---- Hugging Face ----

Status check_hf_rope(const Checkpoint& checkpoint) {
  TRY(check_plain_rope(checkpoint));
  TRY_ASSIGN(const double share, checkpoint.number_or("partial_rotary_factor", 1.0));
  if (share != 1.0) {
    return bad_key(checkpoint, "partial_rotary_factor",
                   fmt::format("is {}, but this family turns whole heads", share));
  }
  return {};
}

Status check_hf_attention(const Checkpoint& checkpoint, const DenseFamily& family) {
  for (const std::string_view key : {"attention_bias", "mlp_bias", "use_sliding_window"}) {
    TRY(refuse_true(checkpoint, key));
  }
  if (family.reads_own_attention) return {};
  // A window without a use_sliding_window beside it is in use.
  if (checkpoint.has("sliding_window") && !checkpoint.has("use_sliding_window")) {
    return bad_key(checkpoint, "sliding_window", "is set, which this version does not support");
  }
  if (!checkpoint.has("layer_types")) return {};
  TRY_ASSIGN(const std::vector<std::string> types, checkpoint.strings("layer_types"));
  for (const std::string& type : types) {
    if (type != "full_attention") {
      return bad_key(checkpoint, "layer_types",
                     fmt::format("holds '{}', but this family has full_attention only", type));
    }
  }
  return {};
}

// Gemma's configurations have had both keys, the second one in charge.
Status check_hf_activation(const Checkpoint& checkpoint, MlpActivation activation) {
  const std::string_view wanted = activation == MlpActivation::kSilu ? "silu" : "gelu_pytorch_tanh";
  const std::string_view key =
      checkpoint.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  TRY_ASSIGN(const std::string got, checkpoint.string_or(key, std::string(wanted)));
  if (got == wanted) return {};
  return bad_key(checkpoint, key, fmt::format("is '{}'; expected '{}'", got, wanted));
}

Status check_hf(const Checkpoint& checkpoint, const DenseFamily& family) {
  TRY(check_foreign_keys(checkpoint, {}));
  TRY(check_hf_rope(checkpoint));
  TRY(check_hf_attention(checkpoint, family));
  return check_hf_activation(checkpoint, family.activation);
}

Status read_hf(const Checkpoint& checkpoint, const DenseFamily& family, DenseConfig& config) {
  TRY(check_hf(checkpoint, family));
  config.name = checkpoint.display_name();
  TRY_ASSIGN(config.layers, checkpoint.integer("num_hidden_layers"));
  TRY_ASSIGN(config.hidden, checkpoint.integer("hidden_size"));
  TRY_ASSIGN(config.heads, checkpoint.integer("num_attention_heads"));
  TRY_ASSIGN(config.kv_heads, checkpoint.integer_or("num_key_value_heads", config.heads));
  TRY_ASSIGN(config.head_dim, checkpoint.integer_or("head_dim", default_head_dim(config)));
  TRY_ASSIGN(config.inner, checkpoint.integer("intermediate_size"));
  TRY_ASSIGN(config.vocabulary, checkpoint.integer("vocab_size"));
  TRY_ASSIGN(config.context_limit, checkpoint.integer("max_position_embeddings"));
  TRY_ASSIGN(const double epsilon, checkpoint.number("rms_norm_eps"));
  config.epsilon = static_cast<float>(epsilon);
  // 10000 and an untied head (tied of Gemma) are what transformers' configuration classes take
  // where the file is silent.
  TRY_ASSIGN(config.rope_base, checkpoint.number_or("rope_theta", 10000.0));
  TRY_ASSIGN(const bool tied, checkpoint.boolean_or("tie_word_embeddings", family.tied_by_default));
  config.head = tied ? Head::kTied : Head::kOwn;
  return {};
}

// ---- GGUF ----

// Keys under "<architecture>." that are read or make no difference.
constexpr std::array<std::string_view, 15> kKnownGgufKeys{
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "rope.dimension_count",
    "rope.freq_base",
    "expert_count",
    "expert_used_count",
    "tensor_data_layout",
};

Status check_gguf(const Checkpoint& checkpoint, const std::string& at,
                  std::span<const std::string_view> own_keys) {
  TRY(check_gguf_keys(checkpoint, kKnownGgufKeys, own_keys));
  TRY_ASSIGN(const int64_t experts, checkpoint.integer_or(at + "expert_count", 0));
  if (experts != 0) {
    return bad_key(checkpoint, at + "expert_count",
                   fmt::format("is {}: experts are not supported in this version", experts));
  }
  return {};
}

// Where the file names a width that must equal the head size, it does. An impossible head size is
// check_sizes()'s.
Status check_head_width(const Checkpoint& checkpoint, const std::string& key,
                        const DenseConfig& config) {
  TRY_ASSIGN(const int64_t width, checkpoint.integer_or(key, config.head_dim));
  if (width != config.head_dim && config.head_dim > 0) {
    return bad_key(checkpoint, key,
                   fmt::format("is {}; expected the head size {}", width, config.head_dim));
  }
  return {};
}

Status read_gguf(const Checkpoint& checkpoint, const DenseFamily& family, DenseConfig& config) {
  const std::string at = checkpoint.architecture() + ".";
  TRY(check_gguf(checkpoint, at, family.own_gguf_keys));
  TRY_ASSIGN(config.name, checkpoint.string_or("general.name", ""));
  TRY_ASSIGN(config.layers, checkpoint.integer(at + "block_count"));
  TRY_ASSIGN(config.hidden, checkpoint.integer(at + "embedding_length"));
  TRY_ASSIGN(config.heads, checkpoint.integer(at + "attention.head_count"));
  TRY_ASSIGN(config.kv_heads, checkpoint.integer_or(at + "attention.head_count_kv", config.heads));
  TRY_ASSIGN(config.head_dim,
             checkpoint.integer_or(at + "attention.key_length", default_head_dim(config)));
  TRY(check_head_width(checkpoint, at + "attention.value_length", config));
  TRY(check_head_width(checkpoint, at + "rope.dimension_count", config));
  TRY_ASSIGN(config.inner, checkpoint.integer(at + "feed_forward_length"));
  TRY_ASSIGN(config.context_limit, checkpoint.integer(at + "context_length"));
  TRY_ASSIGN(const double epsilon, checkpoint.number(at + "attention.layer_norm_rms_epsilon"));
  config.epsilon = static_cast<float>(epsilon);
  TRY_ASSIGN(config.rope_base, checkpoint.number_or(at + "rope.freq_base", 10000.0));
  TRY_ASSIGN(config.vocabulary, gguf_vocabulary(checkpoint));
  config.head = checkpoint.has_tensor("output.weight") ? Head::kOwn : Head::kTied;
  return {};
}

}  // namespace

Result<DenseConfig> read_dense_config(const Checkpoint& checkpoint, const DenseFamily& family) {
  DenseConfig config;
  config.family = family.name;
  config.qk_norm = family.qk_norm;
  config.qkv_bias = family.qkv_bias;
  config.activation = family.activation;
  config.norms = family.norms;
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    config.pairing = family.gguf_pairing;
    TRY(read_gguf(checkpoint, family, config));
  } else {
    config.norm_weights = family.norm_weights;
    TRY(read_hf(checkpoint, family, config));
  }
  TRY(check_sizes(checkpoint, config));
  config.attention.assign(static_cast<size_t>(config.layers), {config.rope_base, 0});
  config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim));
  return config;
}

}  // namespace reckon::models
