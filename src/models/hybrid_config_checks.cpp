#include "models/hybrid_config_checks.h"

#include <fmt/format.h>

#include <array>

#include "models/config_checks.h"

namespace reckon::models {

Status check_hybrid_sizes(const Checkpoint& checkpoint, const HybridConfig& config) {
  const std::array<SizeLimit, 3> limits{{
      {"hidden size", config.hidden, int64_t{1} << 20},
      {"vocabulary", config.vocabulary, int64_t{1} << 24},
      {"context length", config.context_limit, int64_t{1} << 31},
  }};
  TRY(check_limits(checkpoint, limits));
  return check_epsilon(checkpoint, config.epsilon);
}

Status check_hybrid_layer_count(const Checkpoint& checkpoint, int64_t layers) {
  return check_limits(checkpoint, std::array<SizeLimit, 1>{{{"layers", layers, 4096}}});
}

Status check_hybrid_attention(const Checkpoint& checkpoint, const HybridConfig& config) {
  const std::array<SizeLimit, 3> limits{{
      {"attention heads", config.heads, 1 << 14},
      {"KV heads", config.kv_heads, 1 << 14},
      {"head size", config.head_dim, 1 << 14},
  }};
  TRY(check_limits(checkpoint, limits));
  if (config.heads % config.kv_heads == 0) return {};
  return failed(fmt::format("{}: {} attention heads are not a multiple of {} KV heads",
                            checkpoint.path(), config.heads, config.kv_heads));
}

Status check_hybrid_delta(const Checkpoint& checkpoint, const HybridConfig& config) {
  const std::array<SizeLimit, 5> limits{{
      {"linear attention key heads", config.key_heads, 1 << 12},
      {"linear attention value heads", config.value_heads, 1 << 12},
      {"linear attention key head size", config.key_dim, 1 << 12},
      {"linear attention value head size", config.value_dim, 1 << 12},
      {"convolved positions", config.conv_width, 64},
  }};
  TRY(check_limits(checkpoint, limits));
  if (config.value_heads % config.key_heads == 0) return {};
  return failed(
      fmt::format("{}: {} linear attention value heads are not a multiple of {} key heads",
                  checkpoint.path(), config.value_heads, config.key_heads));
}

Status check_hybrid_mlp(const Checkpoint& checkpoint, const HybridConfig& config) {
  return check_limits(checkpoint,
                      std::array<SizeLimit, 1>{{{"MLP width", config.inner, int64_t{1} << 22}}});
}

Status check_hybrid_experts(const Checkpoint& checkpoint, const ExpertSizes& experts) {
  const std::array<SizeLimit, 4> limits{{
      {"experts", experts.count, 1 << 14},
      {"experts of a token", experts.top_k, experts.count},
      {"expert width", experts.inner, int64_t{1} << 20},
      {"shared expert width", experts.shared_inner, int64_t{1} << 22},
  }};
  return check_limits(checkpoint, limits);
}

}  // namespace reckon::models
