#include "models/config_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace reckon::models {
namespace {

// With the value at which the key does nothing; none where there is no such value.
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

}  // namespace

Error bad_key(const Checkpoint& checkpoint, std::string_view key, std::string_view problem) {
  return failed(fmt::format("{}: '{}' {}", checkpoint.path(), key, problem));
}

Status check_limits(const Checkpoint& checkpoint, std::span<const SizeLimit> limits) {
  for (const SizeLimit& limit : limits) {
    if (limit.value < 1 || limit.value > limit.largest) {
      return failed(fmt::format("{}: {} of {} where 1 to {} is expected", checkpoint.path(),
                                limit.what, limit.value, limit.largest));
    }
  }
  return {};
}

Status check_epsilon(const Checkpoint& checkpoint, float epsilon) {
  if (epsilon > 0 && epsilon < 1) return {};
  return failed(fmt::format("{}: an RMSNorm epsilon of {} where over 0 and under 1 is expected",
                            checkpoint.path(), epsilon));
}

Status check_rope_base(const Checkpoint& checkpoint, double base) {
  if (base > 1 && std::isfinite(base)) return {};
  return failed(
      fmt::format("{}: a rope base of {} where over 1 is expected", checkpoint.path(), base));
}

Status refuse_true(const Checkpoint& checkpoint, std::string_view key) {
  TRY_ASSIGN(const bool value, checkpoint.boolean_or(key, false));
  if (value) return bad_key(checkpoint, key, "is true, which this version does not support");
  return {};
}

Status check_foreign_keys(const Checkpoint& checkpoint, std::span<const std::string_view> own) {
  for (const auto& [key, neutral] : kForeignKeys) {
    if (!checkpoint.has(key) || std::ranges::find(own, key) != own.end()) continue;
    const Result<bool> flag = checkpoint.boolean(key);
    const Result<double> number =
        flag.ok() ? Result<double>(*flag ? 1.0 : 0.0) : checkpoint.number(key);
    if (number.ok() && neutral && *number == *neutral) continue;
    return bad_key(checkpoint, key, "is set, which this version does not support");
  }
  return {};
}

Status check_plain_rope(const Checkpoint& checkpoint) {
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
  return {};
}

Status check_gguf_keys(const Checkpoint& checkpoint, std::span<const std::string_view> known,
                       std::span<const std::string_view> own) {
  const std::string at = checkpoint.architecture() + ".";
  for (const auto& [key, value] : checkpoint.gguf()->metadata()) {
    if (!key.starts_with(at)) continue;
    const std::string_view name = key.substr(at.size());
    if (name == "rope.scaling.type") continue;
    if (name.starts_with("rope.scaling.")) {
      return bad_key(checkpoint, key, "is set: rope scaling is not supported in this version");
    }
    if (std::ranges::find(known, name) == known.end() &&
        std::ranges::find(own, name) == own.end()) {
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
  return {};
}

Result<int64_t> gguf_vocabulary(const Checkpoint& checkpoint) {
  const std::string key = checkpoint.architecture() + ".vocab_size";
  TRY_ASSIGN(const Weight embedding, checkpoint.tensor("token_embd.weight"));
  TRY_ASSIGN(const int64_t stated, checkpoint.integer_or(key, embedding.n));
  if (stated == embedding.n) return embedding.n;
  return bad_key(checkpoint, key,
                 fmt::format("is {}, but token_embd.weight has {} rows", stated, embedding.n));
}

}  // namespace reckon::models
