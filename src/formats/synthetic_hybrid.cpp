// Synthetic tensors of the hybrid families, as a text-only folder has them.
#include <fmt/format.h>

#include "formats/synthetic_tensors.h"

namespace reckon {
namespace {

struct HybridSizes {
  int64_t layers = 0, interval = 0, hidden = 0, vocabulary = 0;
  int64_t q_width = 0, kv_width = 0, head_dim = 0;
  int64_t key_width = 0, value_width = 0, value_heads = 0, value_dim = 0, conv_width = 0;
  int64_t inner = 0;                                        // of a dense MLP
  int64_t experts = 0, expert_inner = 0, shared_inner = 0;  // of routed ones; 0 experts: dense
  int64_t draft_layers = 0;
  bool tied = false;
};

Status read_mlp(const HfConfig& config, HybridSizes& sizes) {
  if (!config.has("num_experts")) {
    TRY_ASSIGN(sizes.inner, config.integer("intermediate_size"));
    return {};
  }
  TRY_ASSIGN(sizes.experts, config.integer("num_experts"));
  TRY_ASSIGN(sizes.expert_inner, config.integer("moe_intermediate_size"));
  TRY_ASSIGN(sizes.shared_inner, config.integer("shared_expert_intermediate_size"));
  return {};
}

Result<HybridSizes> hybrid_sizes(const HfConfig& config) {
  HybridSizes sizes;
  TRY_ASSIGN(sizes.layers, config.integer("num_hidden_layers"));
  TRY_ASSIGN(sizes.interval, config.integer("full_attention_interval"));
  TRY_ASSIGN(sizes.hidden, config.integer("hidden_size"));
  TRY_ASSIGN(sizes.vocabulary, config.integer("vocab_size"));
  TRY_ASSIGN(const int64_t heads, config.integer("num_attention_heads"));
  TRY_ASSIGN(const int64_t kv_heads, config.integer("num_key_value_heads"));
  TRY_ASSIGN(sizes.head_dim, config.integer("head_dim"));
  sizes.q_width = heads * sizes.head_dim;
  sizes.kv_width = kv_heads * sizes.head_dim;
  TRY_ASSIGN(const int64_t key_heads, config.integer("linear_num_key_heads"));
  TRY_ASSIGN(const int64_t key_dim, config.integer("linear_key_head_dim"));
  TRY_ASSIGN(sizes.value_heads, config.integer("linear_num_value_heads"));
  TRY_ASSIGN(sizes.value_dim, config.integer("linear_value_head_dim"));
  TRY_ASSIGN(sizes.conv_width, config.integer("linear_conv_kernel_dim"));
  sizes.key_width = key_heads * key_dim;
  sizes.value_width = sizes.value_heads * sizes.value_dim;
  TRY_ASSIGN(sizes.draft_layers, config.integer("mtp_num_hidden_layers"));
  TRY_ASSIGN(sizes.tied, config.boolean("tie_word_embeddings"));
  TRY(read_mlp(config, sizes));
  return sizes;
}

void add_attention(TensorList& list, const HybridSizes& sizes, const std::string& at) {
  list.matrix(at + "q_proj", 2 * sizes.q_width, sizes.hidden);
  list.matrix(at + "k_proj", sizes.kv_width, sizes.hidden);
  list.matrix(at + "v_proj", sizes.kv_width, sizes.hidden);
  list.matrix(at + "o_proj", sizes.hidden, sizes.q_width);
  list.zero_centred_norm(at + "q_norm", sizes.head_dim);
  list.zero_centred_norm(at + "k_norm", sizes.head_dim);
}

void add_delta(TensorList& list, const HybridSizes& sizes, const std::string& at) {
  const int64_t channels = 2 * sizes.key_width + sizes.value_width;
  list.matrix(at + "in_proj_qkv", channels, sizes.hidden);
  list.matrix(at + "in_proj_z", sizes.value_width, sizes.hidden);
  list.matrix(at + "in_proj_b", sizes.value_heads, sizes.hidden);
  list.matrix(at + "in_proj_a", sizes.value_heads, sizes.hidden);
  list.add(at + "conv1d.weight", RandomKind::kMatrix, {channels, 1, sizes.conv_width});
  list.add(at + "A_log", RandomKind::kMatrix, {sizes.value_heads});
  list.add(at + "dt_bias", RandomKind::kMatrix, {sizes.value_heads});
  list.norm(at + "norm", sizes.value_dim);
  list.matrix(at + "out_proj", sizes.hidden, sizes.value_width);
}

void add_dense_mlp(TensorList& list, const HybridSizes& sizes, const std::string& at,
                   int64_t inner) {
  list.matrix(at + "gate_proj", inner, sizes.hidden);
  list.matrix(at + "up_proj", inner, sizes.hidden);
  list.matrix(at + "down_proj", sizes.hidden, inner);
}

void add_mlp(TensorList& list, const HybridSizes& sizes, const std::string& at) {
  if (sizes.experts == 0) {
    add_dense_mlp(list, sizes, at, sizes.inner);
    return;
  }
  list.matrix(at + "gate", sizes.experts, sizes.hidden);
  list.add(at + "experts.gate_up_proj", RandomKind::kMatrix,
           {sizes.experts, 2 * sizes.expert_inner, sizes.hidden});
  list.add(at + "experts.down_proj", RandomKind::kMatrix,
           {sizes.experts, sizes.hidden, sizes.expert_inner});
  add_dense_mlp(list, sizes, at + "shared_expert.", sizes.shared_inner);
  list.matrix(at + "shared_expert_gate", 1, sizes.hidden);
}

enum class LayerKind : uint8_t { kDelta, kAttention };

void add_layer(TensorList& list, const HybridSizes& sizes, const std::string& at, LayerKind kind) {
  list.zero_centred_norm(at + "input_layernorm", sizes.hidden);
  if (kind == LayerKind::kAttention) {
    add_attention(list, sizes, at + "self_attn.");
  } else {
    add_delta(list, sizes, at + "linear_attn.");
  }
  list.zero_centred_norm(at + "post_attention_layernorm", sizes.hidden);
  add_mlp(list, sizes, at + "mlp.");
}

void add_draft_head(TensorList& list, const HybridSizes& sizes) {
  list.zero_centred_norm("mtp.pre_fc_norm_embedding", sizes.hidden);
  list.zero_centred_norm("mtp.pre_fc_norm_hidden", sizes.hidden);
  list.matrix("mtp.fc", sizes.hidden, 2 * sizes.hidden);
  add_layer(list, sizes, "mtp.layers.0.", LayerKind::kAttention);
  list.zero_centred_norm("mtp.norm", sizes.hidden);
}

}  // namespace

Result<std::vector<SyntheticTensor>> qwen3_5_tensors(const HfConfig& config) {
  TRY_ASSIGN(const HybridSizes sizes, hybrid_sizes(config));
  TensorList list;
  list.matrix("model.embed_tokens", sizes.vocabulary, sizes.hidden);
  for (int64_t l = 0; l < sizes.layers; ++l) {
    add_layer(list, sizes, fmt::format("model.layers.{}.", l),
              (l + 1) % sizes.interval == 0 ? LayerKind::kAttention : LayerKind::kDelta);
  }
  list.zero_centred_norm("model.norm", sizes.hidden);
  if (!sizes.tied) list.matrix("lm_head", sizes.vocabulary, sizes.hidden);
  if (sizes.draft_layers > 0) add_draft_head(list, sizes);
  return list.take();
}

}  // namespace reckon
