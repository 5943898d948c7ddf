#include "models/dense_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

namespace reckon::models {
namespace {

Error bad_key(const Checkpoint& checkpoint, std::string_view key, std::string_view problem) {
  return failed(fmt::format("{}: '{}' {}", checkpoint.path(), key, problem));
}

// Limits far beyond any published model: products of any three stay within 63 bits.
struct SizeLimit {
  std::string_view what;
  int64_t value;
  int64_t largest;
};

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
  for (const SizeLimit& limit : limits) {
    if (limit.value < 1 || limit.value > limit.largest) {
      return failed(fmt::format("{}: {} of {} where 1 to {} is expected", checkpoint.path(),
                                limit.what, limit.value, limit.largest));
    }
  }
  if (config.heads % config.kv_heads != 0) {
    return failed(fmt::format("{}: {} attention heads are not a multiple of {} KV heads",
                              checkpoint.path(), config.heads, config.kv_heads));
  }
  if (config.head_dim % 2 != 0) {
    return failed(fmt::format("{}: a head size of {} is odd, but rope turns pairs",
                              checkpoint.path(), config.head_dim));
  }
  if (!(config.epsilon > 0) || !(config.epsilon < 1)) {
    return failed(fmt::format("{}: an RMSNorm epsilon of {} where over 0 and under 1 is expected",
                              checkpoint.path(), config.epsilon));
  }
  if (!(config.rope_base > 1) || !std::isfinite(config.rope_base)) {
    return failed(fmt::format("{}: a rope base of {} where over 1 is expected", checkpoint.path(),
                              config.rope_base));
  }
  return {};
}

// hidden / heads, where the checkpoint does not name a head size; 0 (refused later) where the
// division makes no sense.
int64_t default_head_dim(const DenseConfig& config) {
  return config.heads > 0 && config.hidden % config.heads == 0 ? config.hidden / config.heads : 0;
}

// ---- Hugging Face ----

Status refuse_true(const Checkpoint& checkpoint, std::string_view key) {
  TRY_ASSIGN(const bool value, checkpoint.boolean_or(key, false));
  if (value) return bad_key(checkpoint, key, "is true, which this version does not support");
  return {};
}

// Keys of other models, with the value at which they do nothing; none where there is no such value.
// A configuration that has one computes what nobody here knows, whatever family it says it is.
struct ForeignKey {
  std::string_view key;
  std::optional<double> neutral;
};
constexpr ForeignKey kForeignKeys[] = {
    {"alibi", 0},
    {"attention_chunk_size", 0},
    {"attention_multiplier", std::nullopt},
    {"attn_logit_softcapping", 0},
    {"attn_temperature_tuning", 0},
    {"clip_qkv", std::nullopt},
    {"dim_model_base", std::nullopt},
    {"embedding_multiplier", 1},
    {"final_logit_softcapping", 0},
    {"hidden_size_per_layer_input", 0},
    {"kv_lora_rank", 0},
    {"logit_scale", 1},
    {"logits_scaling", 1},
    {"n_routed_experts", 0},
    {"num_experts", 0},
    {"num_kv_shared_layers", 0},
    {"num_local_experts", 0},
    {"parallel_attn", 0},
    {"q_lora_rank", 0},
    {"qk_layernorm", 0},
    {"residual_multiplier", 1},
    {"scale_depth", std::nullopt},
    {"scale_emb", 1},
    {"use_parallel_residual", 0},
    {"use_qk_norm", 0},
};

Status check_foreign_keys(const Checkpoint& checkpoint) {
  for (const auto& [key, neutral] : kForeignKeys) {
    if (!checkpoint.has(key)) continue;
    const Result<bool> flag = checkpoint.boolean(key);
    const Result<double> number =
        flag.ok() ? Result<double>(*flag ? 1.0 : 0.0) : checkpoint.number(key);
    if (number.ok() && neutral && *number == *neutral) continue;
    return bad_key(checkpoint, key, "is set, which this version does not support");
  }
  return {};
}

Status check_same_base(const Checkpoint& checkpoint) {
  constexpr std::string_view kTop = "rope_theta";
  constexpr std::string_view kNested = "rope_parameters.rope_theta";
  if (!checkpoint.has(kTop) || !checkpoint.has(kNested)) return {};
  TRY_ASSIGN(const double top, checkpoint.number(kTop));
  TRY_ASSIGN(const double nested, checkpoint.number(kNested));
  if (top == nested) return {};
  return bad_key(checkpoint, kTop,
                 fmt::format("is {}, but '{}' is {}: expected the same", top, kNested, nested));
}

Status check_hf_rope(const Checkpoint& checkpoint) {
  TRY(check_same_base(checkpoint));
  for (const std::string object : {"rope_parameters", "rope_scaling"}) {
    if (!checkpoint.has(object)) continue;
    std::string type;
    for (const char* name : {"rope_type", "type"}) {
      const std::string key = object + "." + name;
      TRY_ASSIGN(type, checkpoint.string_or(key, type));
      if (!type.empty() && type != "default") {
        return bad_key(checkpoint, key,
                       fmt::format("is '{}': rope scaling is not supported in this version", type));
      }
    }
    if (type.empty() && object == "rope_scaling") {
      return bad_key(checkpoint, object, "names no rope_type; expected 'default'");
    }
  }
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
  TRY(check_foreign_keys(checkpoint));
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

// Keys under "<architecture>." that are read or make no difference; any other one would change
// what the model computes in a way that nobody here knows.
constexpr std::array<std::string_view, 16> kKnownGgufKeys{
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
    "rope.scaling.type",
    "expert_count",
    "expert_used_count",
    "tensor_data_layout",
};

Status check_gguf(const Checkpoint& checkpoint, const std::string& at,
                  std::span<const std::string_view> own_keys) {
  for (const auto& [key, value] : checkpoint.gguf()->metadata()) {
    if (!key.starts_with(at)) continue;
    const std::string_view name = key.substr(at.size());
    if (name.starts_with("rope.scaling.") && name != "rope.scaling.type") {
      return bad_key(checkpoint, key, "is set: rope scaling is not supported in this version");
    }
    if (std::ranges::find(kKnownGgufKeys, name) == kKnownGgufKeys.end() &&
        std::ranges::find(own_keys, name) == own_keys.end()) {
      return bad_key(checkpoint, key, "is not a key that this version understands");
    }
  }
  TRY_ASSIGN(const std::string scaling, checkpoint.string_or(at + "rope.scaling.type", "none"));
  if (scaling != "none") {
    return bad_key(checkpoint, at + "rope.scaling.type",
                   fmt::format("is '{}': rope scaling is not supported in this version", scaling));
  }
  if (checkpoint.has_tensor("rope_freqs.weight")) {
    return failed(fmt::format(
        "{}: tensor 'rope_freqs.weight' scales rope, which is not supported in this version",
        checkpoint.path()));
  }
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
  TRY_ASSIGN(const Weight embedding, checkpoint.tensor("token_embd.weight"));
  config.vocabulary = embedding.n;
  TRY_ASSIGN(const int64_t stated, checkpoint.integer_or(at + "vocab_size", config.vocabulary));
  if (stated != config.vocabulary) {
    return bad_key(
        checkpoint, at + "vocab_size",
        fmt::format("is {}, but token_embd.weight has {} rows", stated, config.vocabulary));
  }
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
