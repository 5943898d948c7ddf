// The GGUF form of a recorded folder of a hybrid, as llama.cpp's converter makes it: tensors
// renamed, norms plus one, -exp(A_log), value heads in turn, experts joined, the head that drafts
// as one more block. Float32 throughout. A test may change keys and tensors before it is written.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/test_files.h"

namespace reckon::models {

class HybridGguf {
 public:
  struct Key {
    GgufType type = GgufType::kUint32;
    std::string bytes;
  };
  struct Tensor {
    std::vector<int64_t> shape;  // outermost first
    std::vector<float> values;
  };

  // `name` as golden_path() takes it.
  explicit HybridGguf(const std::string& name) {
    auto folder = Checkpoint::open(golden_path(name));
    if (!folder.ok()) ADD_FAILURE() << folder.error().message;
    config_ = nlohmann::json::parse(folder->config_text());
    const std::string family = folder->architecture();
    architecture = family == "qwen3_5"       ? "qwen35"
                   : family == "qwen3_5_moe" ? "qwen35moe"
                                             : "qwen3next";
    add_keys();
    for (const CheckpointTensor& tensor : folder->tensors()) add_tensor(*folder, tensor);
  }

  void number(const std::string& key, uint32_t value) {
    keys[architecture + "." + key] = {GgufType::kUint32, ByteWriter().put(value).bytes()};
  }
  void real(const std::string& key, float value) {
    keys[architecture + "." + key] = {GgufType::kFloat32, ByteWriter().put(value).bytes()};
  }
  void booleans(const std::string& key, const std::vector<bool>& values) {
    ByteWriter array;
    array.put(GgufType::kBool).put<uint64_t>(values.size());
    for (const bool value : values) array.put<uint8_t>(value ? 1 : 0);
    keys[architecture + "." + key] = {GgufType::kArray, array.bytes()};
  }

  [[nodiscard]] std::string bytes() const {
    GgufWriter writer;
    writer.string("general.architecture", architecture);
    for (const auto& [key, value] : keys) writer.key(key, value.type, value.bytes);
    for (const auto& [name, tensor] : tensors) {
      const std::vector<uint64_t> shape(tensor.shape.rbegin(), tensor.shape.rend());
      writer.tensor(
          name, shape, 0,
          {reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4});
    }
    return writer.bytes();
  }

  std::string architecture;
  std::map<std::string, Key> keys;
  std::map<std::string, Tensor> tensors;

 private:
  [[nodiscard]] int64_t size(const char* key) const { return config_[key].get<int64_t>(); }

  void add_keys() {
    const std::pair<const char*, const char*> numbers[] = {
        {"context_length", "max_position_embeddings"},
        {"embedding_length", "hidden_size"},
        {"feed_forward_length", "intermediate_size"},
        {"attention.head_count", "num_attention_heads"},
        {"attention.head_count_kv", "num_key_value_heads"},
        {"attention.key_length", "head_dim"},
        {"attention.value_length", "head_dim"},
        {"ssm.conv_kernel", "linear_conv_kernel_dim"},
        {"ssm.group_count", "linear_num_key_heads"},
        {"ssm.time_step_rank", "linear_num_value_heads"},
        {"ssm.state_size", "linear_key_head_dim"},
        {"expert_count", "num_experts"},
        {"expert_used_count", "num_experts_per_tok"},
        {"expert_feed_forward_length", "moe_intermediate_size"},
        {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
    for (const auto& [key, from] : numbers) {
      if (config_.contains(from)) number(key, static_cast<uint32_t>(size(from)));
    }
    number("ssm.inner_size",
           static_cast<uint32_t>(size("linear_num_value_heads") * size("linear_value_head_dim")));
    const nlohmann::json& rope = config_["rope_parameters"];
    const double dims =
        config_["head_dim"].get<double>() * rope["partial_rotary_factor"].get<double>();
    number("rope.dimension_count", static_cast<uint32_t>(dims));
    real("rope.freq_base", rope["rope_theta"].get<float>());
    real("attention.layer_norm_rms_epsilon", config_["rms_norm_eps"].get<float>());
    std::vector<bool> recurrent;
    for (const auto& type : config_["layer_types"]) recurrent.push_back(type == "linear_attention");
    recurrent.push_back(false);
    booleans("attention.recurrent_layers", recurrent);
    number("block_count", static_cast<uint32_t>(recurrent.size()));
    number("nextn_predict_layers", 1);
  }

  // What stands behind a layer's prefix, or the head's.
  [[nodiscard]] static std::string renamed(const std::string& name) {
    static const std::map<std::string, std::string> names = {
        {"input_layernorm.weight", "attn_norm.weight"},
        {"post_attention_layernorm.weight", "post_attention_norm.weight"},
        {"self_attn.q_proj.weight", "attn_q.weight"},
        {"self_attn.k_proj.weight", "attn_k.weight"},
        {"self_attn.v_proj.weight", "attn_v.weight"},
        {"self_attn.q_norm.weight", "attn_q_norm.weight"},
        {"self_attn.k_norm.weight", "attn_k_norm.weight"},
        {"self_attn.o_proj.weight", "attn_output.weight"},
        {"linear_attn.in_proj_qkv.weight", "attn_qkv.weight"},
        {"linear_attn.in_proj_z.weight", "attn_gate.weight"},
        {"linear_attn.in_proj_b.weight", "ssm_beta.weight"},
        {"linear_attn.in_proj_a.weight", "ssm_alpha.weight"},
        {"linear_attn.in_proj_ba.weight", "ssm_ba.weight"},
        {"linear_attn.conv1d.weight", "ssm_conv1d.weight"},
        {"linear_attn.A_log", "ssm_a"},
        {"linear_attn.dt_bias", "ssm_dt.bias"},
        {"linear_attn.norm.weight", "ssm_norm.weight"},
        {"linear_attn.out_proj.weight", "ssm_out.weight"},
        {"mlp.gate_proj.weight", "ffn_gate.weight"},
        {"mlp.up_proj.weight", "ffn_up.weight"},
        {"mlp.down_proj.weight", "ffn_down.weight"},
        {"mlp.gate.weight", "ffn_gate_inp.weight"},
        {"mlp.shared_expert_gate.weight", "ffn_gate_inp_shexp.weight"},
        {"mlp.shared_expert.gate_proj.weight", "ffn_gate_shexp.weight"},
        {"mlp.shared_expert.up_proj.weight", "ffn_up_shexp.weight"},
        {"mlp.shared_expert.down_proj.weight", "ffn_down_shexp.weight"},
        {"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight"},
        {"mlp.experts.down_proj", "ffn_down_exps.weight"},
        {"fc.weight", "nextn.eh_proj.weight"},
        {"pre_fc_norm_embedding.weight", "nextn.enorm.weight"},
        {"pre_fc_norm_hidden.weight", "nextn.hnorm.weight"},
        {"norm.weight", "nextn.shared_head_norm.weight"}};
    const auto found = names.find(name);
    EXPECT_NE(found, names.end()) << name;
    return found == names.end() ? name : found->second;
  }

  void add_tensor(const Checkpoint& folder, const CheckpointTensor& stored) {
    const Weight& weight = *stored.weight;
    Tensor tensor{stored.shape, std::vector<float>(static_cast<size_t>(weight.n * weight.k))};
    const auto rows = folder.rows(stored.name);
    EXPECT_TRUE(rows.ok() && (*rows)->rows(0, weight.n, DType::kF32, tensor.values.data()).ok());
    const std::string& name = stored.name;
    const bool norm = name.ends_with("norm.weight") || name.starts_with("mtp.pre_fc_norm");
    if (norm && !name.ends_with("linear_attn.norm.weight")) {
      for (float& value : tensor.values) value += 1;
    } else if (name.ends_with("A_log")) {
      for (float& value : tensor.values) value = -std::exp(value);
    } else if (name.ends_with("conv1d.weight")) {
      tensor.shape = {weight.n, weight.k};
    } else if (name.ends_with("shared_expert_gate.weight")) {
      tensor.shape = {weight.k};
    }
    if (name == "model.embed_tokens.weight") {
      tensors["token_embd.weight"] = std::move(tensor);
    } else if (name == "model.norm.weight") {
      tensors["output_norm.weight"] = std::move(tensor);
    } else if (name == "lm_head.weight") {
      tensors["output.weight"] = std::move(tensor);
    } else {
      add_of_layer(name, std::move(tensor));
    }
  }

  void add_of_layer(const std::string& name, Tensor tensor) {
    const std::string layers = "layers.";
    const size_t at = name.find(layers);
    std::string number = std::to_string(size("num_hidden_layers"));  // of the head that drafts
    std::string rest = name.substr(name.find('.') + 1);
    if (at != std::string::npos) {
      const size_t dot = name.find('.', at + layers.size());
      if (name.starts_with("model.")) number = name.substr(at + layers.size(), dot - at - 7);
      rest = name.substr(dot + 1);
    }
    const std::string block = "blk." + number + ".";
    const std::string experts = "mlp.experts.";
    if (rest.starts_with(experts) && rest.find('.', experts.size()) != std::string::npos) {
      return add_expert(block, rest.substr(experts.size()), tensor);
    }
    if (rest == "linear_attn.in_proj_qkvz.weight") return add_parted(block, tensor);
    if (architecture != "qwen3next" && rest.starts_with("linear_attn.")) {
      order_value_heads(rest, tensor);
    }
    tensors[block + renamed(rest)] = std::move(tensor);
  }

  // "3.up_proj.weight": behind the experts before it, which come in the order of their names.
  void add_expert(const std::string& block, const std::string& name, const Tensor& tensor) {
    const size_t dot = name.find('.');
    const std::string kind = name.substr(dot + 1, name.find('_', dot) - dot - 1);
    Tensor& all = tensors[block + "ffn_" + kind + "_exps.weight"];
    all.shape = {size("num_experts"), tensor.shape[0], tensor.shape[1]};
    all.values.resize(tensor.values.size() * static_cast<size_t>(all.shape[0]));
    const size_t expert = std::stoul(name.substr(0, dot));
    std::copy(tensor.values.begin(), tensor.values.end(),
              all.values.begin() + static_cast<ptrdiff_t>(expert * tensor.values.size()));
  }

  // Rows [first, first + count) of a tensor behind those of another.
  static void append_rows(const Tensor& from, int64_t first, int64_t count, Tensor& to) {
    const int64_t k = from.shape.back();
    const auto begin = from.values.begin() + first * k;
    to.values.insert(to.values.end(), begin, begin + count * k);
    to.shape = {static_cast<int64_t>(to.values.size()) / k, k};
  }

  // q, k and v of all key heads, and z of all, from what lies key head by key head.
  void add_parted(const std::string& block, const Tensor& tensor) {
    const int64_t key_heads = size("linear_num_key_heads");
    const int64_t key = size("linear_key_head_dim");
    const int64_t value =
        size("linear_num_value_heads") / key_heads * size("linear_value_head_dim");
    const int64_t stride = 2 * key + 2 * value;
    const auto part = [&](int64_t offset, int64_t count, Tensor& to) {
      for (int64_t h = 0; h < key_heads; ++h) append_rows(tensor, h * stride + offset, count, to);
    };
    Tensor& qkv = tensors[block + "attn_qkv.weight"];
    part(0, key, qkv);
    part(key, key, qkv);
    part(2 * key, value, qkv);
    part(2 * key + value, value, tensors[block + "attn_gate.weight"]);
  }

  // Value heads one key head after another in turn: the first of each, the second of each, ...
  void order_value_heads(const std::string& rest, Tensor& tensor) const {
    const int64_t key_heads = size("linear_num_key_heads");
    const int64_t each = size("linear_num_value_heads") / key_heads;
    const bool narrow = rest.ends_with("in_proj_a.weight") || rest.ends_with("in_proj_b.weight") ||
                        rest.ends_with("A_log") || rest.ends_with("dt_bias");
    const int64_t dim = narrow ? 1 : size("linear_value_head_dim");
    const bool columns = rest.ends_with("out_proj.weight");
    const int64_t k = tensor.shape.size() > 1 ? tensor.shape.back() : 1;
    const int64_t before = rest.ends_with("qkv.weight") || rest.ends_with("conv1d.weight")
                               ? 2 * key_heads * size("linear_key_head_dim")
                               : 0;
    if (rest.ends_with("linear_attn.norm.weight")) return;
    const std::vector<float> stored = tensor.values;
    for (int64_t to = 0; to < key_heads * each * dim; ++to) {
      const int64_t head = to / dim;
      const int64_t from = (head % key_heads * each + head / key_heads) * dim + to % dim;
      const int64_t lines = columns ? tensor.shape[0] : k;
      for (int64_t i = 0; i < lines; ++i) {
        const auto at = [&](int64_t n) { return columns ? i * k + n : (before + n) * k + i; };
        tensor.values[static_cast<size_t>(at(to))] = stored[static_cast<size_t>(at(from))];
      }
    }
  }

  nlohmann::json config_;
};

}  // namespace reckon::models
