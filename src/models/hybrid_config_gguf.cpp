// The metadata of GGUF files of hybrids, as llama.cpp's converter writes it. Layers that draft
// count as blocks there, behind the others.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "models/config_checks.h"
#include "models/hybrid_config_checks.h"

namespace reckon::models {
namespace {

// Keys under "<architecture>." that are read or make no difference: of a text all sections of
// multi-section rope stand at the same position, and blocks with experts have no other MLP.
constexpr std::array<std::string_view, 25> kKnownKeys{
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "nextn_predict_layers",
    "full_attention_interval",
    "attention.recurrent_layers",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "rope.dimension_count",
    "rope.dimension_sections",
    "rope.freq_base",
    "expert_count",
    "expert_used_count",
    "expert_feed_forward_length",
    "expert_shared_feed_forward_length",
    "ssm.conv_kernel",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.time_step_rank",
    "ssm.group_count",
};
constexpr int64_t kInterval = 4;  // every fourth layer attends, where the file is silent

class Reader {
 public:
  Reader(const Checkpoint& checkpoint, HybridConfig& config)
      : checkpoint_(checkpoint), config_(config), at_(checkpoint.architecture() + ".") {}

  [[nodiscard]] Status read() {
    TRY(check_gguf_keys(checkpoint_, kKnownKeys, {}));
    TRY_ASSIGN(config_.name, checkpoint_.string_or("general.name", ""));
    TRY(read_sizes());
    TRY(read_layers());
    TRY(read_attention());
    TRY(read_delta());
    return read_mlp();
  }

 private:
  [[nodiscard]] Result<int64_t> integer(std::string_view key) const {
    return checkpoint_.integer(at_ + std::string(key));
  }
  [[nodiscard]] Result<int64_t> integer_or(std::string_view key, int64_t fallback) const {
    return checkpoint_.integer_or(at_ + std::string(key), fallback);
  }
  [[nodiscard]] Error bad(std::string_view key, std::string_view problem) const {
    return bad_key(checkpoint_, at_ + std::string(key), problem);
  }

  [[nodiscard]] Status read_sizes() {
    TRY_ASSIGN(config_.hidden, integer("embedding_length"));
    TRY_ASSIGN(config_.context_limit, integer("context_length"));
    TRY_ASSIGN(const double epsilon, checkpoint_.number(at_ + "attention.layer_norm_rms_epsilon"));
    config_.epsilon = static_cast<float>(epsilon);
    TRY_ASSIGN(config_.vocabulary, gguf_vocabulary(checkpoint_));
    config_.head = checkpoint_.has_tensor("output.weight") ? Head::kOwn : Head::kTied;
    return check_hybrid_sizes(checkpoint_, config_);
  }

  [[nodiscard]] Status read_layers() {
    TRY_ASSIGN(const int64_t blocks, integer("block_count"));
    TRY(check_hybrid_layer_count(checkpoint_, blocks));
    TRY_ASSIGN(const int64_t drafting, integer_or("nextn_predict_layers", 0));
    if (drafting < 0 || drafting > 1) {
      return bad("nextn_predict_layers", fmt::format("is {}; expected 0 or 1", drafting));
    }
    config_.draft_layers = drafting;
    const int64_t layers = blocks - drafting;
    TRY(check_hybrid_layer_count(checkpoint_, layers));
    return checkpoint_.has(at_ + "attention.recurrent_layers") ? layers_by_list(blocks, layers)
                                                               : layers_by_interval(layers);
  }

  [[nodiscard]] Status layers_by_list(int64_t blocks, int64_t layers) {
    const std::string_view key = "attention.recurrent_layers";
    TRY_ASSIGN(const std::vector<bool> recurrent,
               checkpoint_.gguf()->booleans(at_ + std::string(key)));
    if (static_cast<int64_t>(recurrent.size()) != blocks) {
      return bad(key, fmt::format("has {} entries for {} blocks", recurrent.size(), blocks));
    }
    for (int64_t b = 0; b < blocks; ++b) {
      const bool is_recurrent = recurrent[static_cast<size_t>(b)];
      if (b < layers) {
        add_layer(is_recurrent);
      } else if (is_recurrent) {
        return bad(key, "says that the head that drafts is recurrent; expected attention");
      }
    }
    return {};
  }

  [[nodiscard]] Status layers_by_interval(int64_t layers) {
    const std::string_view key = "full_attention_interval";
    TRY_ASSIGN(const int64_t interval, integer_or(key, kInterval));
    if (interval < 1) return bad(key, fmt::format("is {}; expected 1 or more", interval));
    for (int64_t l = 1; l <= layers; ++l) add_layer(l % interval != 0);
    return {};
  }

  void add_layer(bool is_recurrent) {
    config_.layers.push_back(is_recurrent ? HybridLayerKind::kDelta : HybridLayerKind::kAttention);
  }

  [[nodiscard]] Status read_attention() {
    TRY_ASSIGN(config_.heads, integer("attention.head_count"));
    TRY_ASSIGN(config_.kv_heads, integer("attention.head_count_kv"));
    TRY_ASSIGN(config_.head_dim, integer("attention.key_length"));
    TRY(check_hybrid_attention(checkpoint_, config_));
    TRY_ASSIGN(const int64_t value, integer_or("attention.value_length", config_.head_dim));
    if (value != config_.head_dim) {
      return bad("attention.value_length",
                 fmt::format("is {}; expected the head size {}", value, config_.head_dim));
    }
    TRY_ASSIGN(config_.rope_dims, integer("rope.dimension_count"));
    if (config_.rope_dims < 2 || config_.rope_dims > config_.head_dim ||
        config_.rope_dims % 2 != 0) {
      return bad("rope.dimension_count", fmt::format("is {}; expected an even number of 2 to {}",
                                                     config_.rope_dims, config_.head_dim));
    }
    TRY_ASSIGN(config_.rope_base, checkpoint_.number_or(at_ + "rope.freq_base", 10000.0));
    return check_rope_base(checkpoint_, config_.rope_base);
  }

  // The width of all value heads is what the file has; value heads lie as the family's files do.
  [[nodiscard]] Status read_delta() {
    TRY_ASSIGN(config_.key_heads, integer("ssm.group_count"));
    TRY_ASSIGN(config_.value_heads, integer("ssm.time_step_rank"));
    TRY_ASSIGN(config_.key_dim, integer("ssm.state_size"));
    TRY_ASSIGN(config_.conv_width, integer("ssm.conv_kernel"));
    TRY_ASSIGN(const int64_t width, integer("ssm.inner_size"));
    config_.value_dim = config_.value_heads > 0 ? width / config_.value_heads : 0;
    TRY(check_hybrid_delta(checkpoint_, config_));
    if (config_.value_width() != width) {
      return bad("ssm.inner_size", fmt::format("is {}; expected a multiple of {} value heads",
                                               width, config_.value_heads));
    }
    if (config_.conv_width < 2) return bad("ssm.conv_kernel", "is 1; expected 2 to 64");
    if (config_.family.inputs == DeltaInputs::kApart) {
      config_.key_order = kernels::KeyHeadOrder::kTiled;
    }
    return {};
  }

  [[nodiscard]] Status read_mlp() {
    if (config_.family.mlp == HybridMlp::kExperts) return read_experts();
    TRY_ASSIGN(const int64_t experts, integer_or("expert_count", 0));
    if (experts != 0) return bad("expert_count", fmt::format("is {}; expected none", experts));
    TRY_ASSIGN(config_.inner, integer("feed_forward_length"));
    return check_hybrid_mlp(checkpoint_, config_);
  }

  [[nodiscard]] Status read_experts() {
    ExpertSizes& experts = config_.experts;
    TRY_ASSIGN(experts.count, integer("expert_count"));
    TRY_ASSIGN(experts.top_k, integer("expert_used_count"));
    TRY_ASSIGN(experts.inner, integer("expert_feed_forward_length"));
    TRY_ASSIGN(experts.shared_inner, integer("expert_shared_feed_forward_length"));
    return check_hybrid_experts(checkpoint_, experts);
  }

  const Checkpoint& checkpoint_;
  HybridConfig& config_;
  std::string at_;  // what keys begin with
};

}  // namespace

Status read_hybrid_gguf(const Checkpoint& checkpoint, HybridConfig& config) {
  return Reader(checkpoint, config).read();
}

}  // namespace reckon::models
