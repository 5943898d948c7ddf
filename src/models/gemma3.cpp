#include "models/gemma3.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "models/config_checks.h"
#include "models/dense.h"
#include "models/dense_config.h"

namespace reckon::models {
namespace {

constexpr int64_t kPattern = 6;  // every sixth layer sees everything
constexpr double kLocalRopeBase = 10000.0;
constexpr double kGlobalRopeBase = 1e6;
constexpr int64_t kLargestWindow = int64_t{1} << 31;

constexpr std::array<std::string_view, 2> kGgufKeys{"attention.sliding_window",
                                                    "rope.freq_base_swa"};

Status check_window(const Checkpoint& checkpoint, std::string_view key, int64_t window) {
  if (window >= 1 && window <= kLargestWindow) return {};
  return bad_key(checkpoint, key,
                 fmt::format("is {}; expected 1 to {} positions", window, kLargestWindow));
}

Status check_base(const Checkpoint& checkpoint, std::string_view key, double base) {
  if (base > 1 && std::isfinite(base)) return {};
  return bad_key(checkpoint, key, fmt::format("is {}; expected a rope base over 1", base));
}

float query_scale(double scalar) {
  return static_cast<float>(1.0 / std::sqrt(scalar));
}

// By the place of a layer: five local ones, then a global one.
void set_layers(DenseConfig& config, int64_t pattern, const LayerAttention& local,
                const LayerAttention& global) {
  for (int64_t l = 0; l < config.layers; ++l) {
    config.attention[static_cast<size_t>(l)] = (l + 1) % pattern == 0 ? global : local;
  }
}

Status read_gguf(const Checkpoint& checkpoint, DenseConfig& config) {
  const std::string window_key = "gemma3.attention.sliding_window";
  const std::string local_key = "gemma3.rope.freq_base_swa";
  TRY_ASSIGN(const int64_t window, checkpoint.integer(window_key));
  TRY(check_window(checkpoint, window_key, window));
  TRY_ASSIGN(const double local, checkpoint.number_or(local_key, kLocalRopeBase));
  TRY(check_base(checkpoint, local_key, local));
  TRY_ASSIGN(const double global, checkpoint.number_or("gemma3.rope.freq_base", kGlobalRopeBase));
  set_layers(config, kPattern, {local, window}, {global, 0});
  // The file does not say; only the 27B model, the one with 62 layers, scales by its width.
  const int64_t scalar = config.layers == 62 ? config.hidden / config.heads : config.head_dim;
  config.attention_scale = query_scale(static_cast<double>(scalar));
  return {};
}

Status check_hf(const Checkpoint& checkpoint) {
  TRY_ASSIGN(const bool both_ways, checkpoint.boolean_or("use_bidirectional_attention", false));
  if (both_ways) {
    return bad_key(checkpoint, "use_bidirectional_attention", "is true; expected causal attention");
  }
  return {};
}

// The rope base of one kind of layers: transformers 5 has an object a kind, before it had two keys.
Result<double> hf_base(const Checkpoint& checkpoint, const std::string& kind,
                       const std::string& key, double fallback) {
  const std::string at = "rope_parameters." + kind;
  TRY_ASSIGN(const std::string type, checkpoint.string_or(at + ".rope_type", "default"));
  if (type != "default") {
    return bad_key(checkpoint, at + ".rope_type",
                   fmt::format("is '{}': rope scaling is not supported in this version", type));
  }
  TRY_ASSIGN(const double flat, checkpoint.number_or(key, fallback));
  TRY_ASSIGN(const double base, checkpoint.number_or(at + ".rope_theta", flat));
  if (checkpoint.has(key) && base != flat) {
    return bad_key(
        checkpoint, key,
        fmt::format("is {}, but '{}.rope_theta' is {}: expected the same", flat, at, base));
  }
  TRY(check_base(checkpoint, key, base));
  return base;
}

Status set_hf_layers(const Checkpoint& checkpoint, DenseConfig& config, const LayerAttention& local,
                     const LayerAttention& global) {
  if (!checkpoint.has("layer_types")) {
    TRY_ASSIGN(const int64_t pattern, checkpoint.integer_or("sliding_window_pattern", kPattern));
    if (pattern < 1) {
      return bad_key(checkpoint, "sliding_window_pattern",
                     fmt::format("is {}; expected 1 or more", pattern));
    }
    set_layers(config, pattern, local, global);
    return {};
  }
  TRY_ASSIGN(const std::vector<std::string> types, checkpoint.strings("layer_types"));
  if (static_cast<int64_t>(types.size()) != config.layers) {
    return bad_key(checkpoint, "layer_types",
                   fmt::format("has {} entries for {} layers", types.size(), config.layers));
  }
  for (size_t l = 0; l < types.size(); ++l) {
    if (types[l] != "sliding_attention" && types[l] != "full_attention") {
      return bad_key(
          checkpoint, "layer_types",
          fmt::format("holds '{}'; expected sliding_attention or full_attention", types[l]));
    }
    config.attention[l] = types[l] == "full_attention" ? global : local;
  }
  return {};
}

Status read_hf(const Checkpoint& checkpoint, DenseConfig& config) {
  TRY(check_hf(checkpoint));
  TRY_ASSIGN(const int64_t window, checkpoint.integer("sliding_window"));
  TRY(check_window(checkpoint, "sliding_window", window));
  TRY_ASSIGN(const double local,
             hf_base(checkpoint, "sliding_attention", "rope_local_base_freq", kLocalRopeBase));
  TRY_ASSIGN(const double global,
             hf_base(checkpoint, "full_attention", "rope_theta", kGlobalRopeBase));
  TRY(set_hf_layers(checkpoint, config, {local, window}, {global, 0}));
  TRY_ASSIGN(const double scalar, checkpoint.number_or("query_pre_attn_scalar", 256.0));
  if (!(scalar > 0) || !std::isfinite(scalar)) {
    return bad_key(checkpoint, "query_pre_attn_scalar",
                   fmt::format("is {}; expected a number above 0", scalar));
  }
  config.attention_scale = query_scale(scalar);
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> build_gemma3(const Checkpoint& checkpoint, WeightPlacer& placer,
                                            const BuildOptions& /*options*/) {
  TRY_ASSIGN(DenseConfig config,
             read_dense_config(checkpoint, {.name = "gemma3",
                                            .qk_norm = QkNorm::kPerHead,
                                            .gguf_pairing = kernels::RopePairing::kHalf,
                                            .qkv_bias = QkvBias::kNone,
                                            .activation = MlpActivation::kGeluTanh,
                                            .norms = BlockNorms::kPreAndPost,
                                            .norm_weights = NormWeights::kZeroCentred,
                                            .own_gguf_keys = kGgufKeys,
                                            .reads_own_attention = true,
                                            .tied_by_default = true}));
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  TRY(checkpoint.kind() == CheckpointKind::kGguf ? read_gguf(checkpoint, config)
                                                 : read_hf(checkpoint, config));
  return build_dense(checkpoint, std::move(config), placer);
}

}  // namespace reckon::models
