// Tiny checkpoints made by tests of models and of the engine: a Hugging Face folder with zero
// weights whose configuration and tensors a test may change before it is written.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/test_files.h"

namespace reckon::models {

class TinyFolder {
 public:
  // hidden 8, 2 heads over 1 of 4, MLP 12, 1 layer, vocabulary 10, untied.
  explicit TinyFolder(const std::string& family = "llama") {
    config = {{"model_type", family},
              {"hidden_size", 8},
              {"intermediate_size", 12},
              {"num_hidden_layers", 1},
              {"num_attention_heads", 2},
              {"num_key_value_heads", 1},
              {"head_dim", 4},
              {"vocab_size", 10},
              {"rms_norm_eps", 1e-5},
              {"max_position_embeddings", 64},
              {"rope_theta", 10000.0},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", false}};
    const std::string at = "model.layers.0.";
    shapes = {{"model.embed_tokens.weight", {10, 8}},
              {"model.norm.weight", {8}},
              {"lm_head.weight", {10, 8}},
              {at + "input_layernorm.weight", {8}},
              {at + "post_attention_layernorm.weight", {8}},
              {at + "self_attn.q_proj.weight", {8, 8}},
              {at + "self_attn.k_proj.weight", {4, 8}},
              {at + "self_attn.v_proj.weight", {4, 8}},
              {at + "self_attn.o_proj.weight", {8, 8}},
              {at + "mlp.gate_proj.weight", {12, 8}},
              {at + "mlp.up_proj.weight", {12, 8}},
              {at + "mlp.down_proj.weight", {8, 12}}};
    if (family == "qwen2") {
      shapes[at + "self_attn.q_proj.bias"] = {8};
      shapes[at + "self_attn.k_proj.bias"] = {4};
      shapes[at + "self_attn.v_proj.bias"] = {4};
    }
    if (family == "gemma3_text") {
      config.erase("hidden_act");
      config["hidden_activation"] = "gelu_pytorch_tanh";
      config["sliding_window"] = 5;
      for (const char* norm : {"pre_feedforward_layernorm", "post_feedforward_layernorm"}) {
        shapes[at + norm + ".weight"] = {8};
      }
    }
    if (family == "qwen3" || family == "gemma3_text") {
      shapes[at + "self_attn.q_norm.weight"] = {4};
      shapes[at + "self_attn.k_norm.weight"] = {4};
    }
  }

  // Writes the folder and gives its path.
  const std::string& write() {
    folder_.write("config.json", config.dump());
    nlohmann::json header = nlohmann::json::object();
    int64_t offset = 0;
    for (const auto& [name, shape] : shapes) {
      int64_t bytes = element_bytes(name);
      for (const int64_t size : shape) bytes *= size;
      header[name] = {
          {"dtype", type_of(name)}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
      offset += bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string data(static_cast<size_t>(offset), '\0');
    if (!fill.empty()) {
      const auto begin = header[fill]["data_offsets"][0].get<size_t>();
      data[begin] = '\1';
    }
    folder_.write("model.safetensors",
                  ByteWriter().put<uint64_t>(text.size()).raw(text).raw(data).bytes());
    return folder_.path();
  }

  [[nodiscard]] Checkpoint open() {
    auto checkpoint = Checkpoint::open(write());
    if (!checkpoint.ok()) ADD_FAILURE() << checkpoint.error().message;
    return std::move(checkpoint).value();
  }

  nlohmann::json config;
  std::map<std::string, std::vector<int64_t>> shapes;
  std::map<std::string, std::string> types;  // other than F32, by name: "I32", "BF16"
  std::string fill;                          // a tensor whose first byte is not zero

 private:
  [[nodiscard]] std::string type_of(const std::string& name) const {
    const auto found = types.find(name);
    return found == types.end() ? "F32" : found->second;
  }
  [[nodiscard]] int64_t element_bytes(const std::string& name) const {
    return type_of(name) == "BF16" ? 2 : 4;
  }

  TestFolder folder_;
};

// A GGUF file of the `llama` family with the same sizes and zero F32 weights; further keys may be
// added before bytes() is taken.
inline GgufWriter tiny_gguf_llama() {
  GgufWriter writer;
  writer.string("general.architecture", "llama");
  const auto number = [&](const char* key, uint32_t value) {
    writer.scalar<uint32_t>(key, GgufType::kUint32, value);
  };
  number("llama.block_count", 1);
  number("llama.context_length", 64);
  number("llama.embedding_length", 8);
  number("llama.feed_forward_length", 12);
  number("llama.attention.head_count", 2);
  number("llama.attention.head_count_kv", 1);
  writer.scalar<float>("llama.attention.layer_norm_rms_epsilon", GgufType::kFloat32, 1e-5F);
  const auto tensor = [&](const char* name, std::vector<uint64_t> shape) {
    uint64_t bytes = sizeof(float);
    for (const uint64_t size : shape) bytes *= size;
    writer.tensor(name, shape, 0, std::string(bytes, '\0'));
  };
  tensor("token_embd.weight", {8, 10});
  tensor("output_norm.weight", {8});
  tensor("blk.0.attn_norm.weight", {8});
  tensor("blk.0.ffn_norm.weight", {8});
  tensor("blk.0.attn_q.weight", {8, 8});
  tensor("blk.0.attn_k.weight", {8, 4});
  tensor("blk.0.attn_v.weight", {8, 4});
  tensor("blk.0.attn_output.weight", {8, 8});
  tensor("blk.0.ffn_gate.weight", {8, 12});
  tensor("blk.0.ffn_up.weight", {8, 12});
  tensor("blk.0.ffn_down.weight", {12, 8});
  return writer;
}

// A GGUF file of the `llama` family whose rows are whole super-blocks: hidden 256, 4 heads over 2
// of 64, MLP 512, 1 layer, vocabulary 40, tied. `matrix(n, k)` gives the bytes of each matrix, of
// the element type with this number in the file; norms are ones.
inline GgufWriter wide_gguf_llama(uint32_t type,
                                  const std::function<std::string(int64_t n, int64_t k)>& matrix) {
  GgufWriter writer;
  writer.string("general.architecture", "llama");
  const auto number = [&](const char* key, uint32_t value) {
    writer.scalar<uint32_t>(key, GgufType::kUint32, value);
  };
  number("llama.block_count", 1);
  number("llama.context_length", 64);
  number("llama.embedding_length", 256);
  number("llama.feed_forward_length", 512);
  number("llama.attention.head_count", 4);
  number("llama.attention.head_count_kv", 2);
  writer.scalar<float>("llama.attention.layer_norm_rms_epsilon", GgufType::kFloat32, 1e-5F);
  const auto add = [&](const char* name, uint64_t n, uint64_t k) {
    writer.tensor(name, {k, n}, type, matrix(static_cast<int64_t>(n), static_cast<int64_t>(k)));
  };
  ByteWriter ones;
  for (int i = 0; i < 256; ++i) ones.put(1.0F);
  for (const char* name :
       {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"}) {
    writer.tensor(name, {256}, 0, ones.bytes());
  }
  add("token_embd.weight", 40, 256);
  add("blk.0.attn_q.weight", 256, 256);
  add("blk.0.attn_k.weight", 128, 256);
  add("blk.0.attn_v.weight", 128, 256);
  add("blk.0.attn_output.weight", 256, 256);
  add("blk.0.ffn_gate.weight", 512, 256);
  add("blk.0.ffn_up.weight", 512, 256);
  add("blk.0.ffn_down.weight", 256, 512);
  return writer;
}

}  // namespace reckon::models
