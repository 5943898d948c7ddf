// The GGUF form of a checkpoint computes the bits of its folder: tensors renamed, norms as GGUF has
// them. What GGUF files of a family cannot say is set to what they imply.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "engine/test_sessions.h"
#include "formats/test_files.h"
#include "tensor/dtype.h"

namespace reckon::engine {
namespace {

using nlohmann::json;

struct Form {
  std::string folder;                   // below golden
  std::string architecture;             // of GGUF
  std::map<std::string, json> changes;  // of config.json
  std::map<std::string, std::string> layer_names;
};

const std::map<std::string, std::string> kLayerNames = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.q_proj.bias", "attn_q.bias"},
    {"self_attn.k_proj.bias", "attn_k.bias"},
    {"self_attn.v_proj.bias", "attn_v.bias"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"}};

std::string gguf_name(const std::string& name, const Form& form) {
  if (name == "model.embed_tokens.weight") return "token_embd.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  const std::string prefix = "model.layers.";
  const size_t dot = name.find('.', prefix.size());
  const std::string layer = name.substr(prefix.size(), dot - prefix.size());
  const std::string rest = name.substr(dot + 1);
  const auto own = form.layer_names.find(rest);
  return "blk." + layer + "." +
         (own != form.layer_names.end() ? own->second : kLayerNames.at(rest));
}

std::string f32_bytes(const Checkpoint& checkpoint, const CheckpointTensor& tensor, float add) {
  const Weight& weight = *tensor.weight;
  std::vector<float> values(static_cast<size_t>(weight.n * weight.k));
  const auto rows = checkpoint.rows(tensor.name);
  EXPECT_TRUE(rows.ok() && (*rows)->rows(0, weight.n, DType::kF32, values.data()).ok());
  for (float& value : values) value += add;
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// As float32, so that both forms hold the same numbers (bf16 ones in the folder).
GgufWriter gguf_of(const Checkpoint& checkpoint, const json& config, const Form& form) {
  GgufWriter writer;
  writer.string("general.architecture", form.architecture);
  const auto number = [&](const std::string& key, const char* from) {
    writer.scalar<uint32_t>((form.architecture + "." + key).c_str(), GgufType::kUint32,
                            config[from].get<uint32_t>());
  };
  number("block_count", "num_hidden_layers");
  number("context_length", "max_position_embeddings");
  number("embedding_length", "hidden_size");
  number("feed_forward_length", "intermediate_size");
  number("attention.head_count", "num_attention_heads");
  number("attention.head_count_kv", "num_key_value_heads");
  number("attention.key_length", "head_dim");
  number("attention.value_length", "head_dim");
  if (config["sliding_window"].is_number()) number("attention.sliding_window", "sliding_window");
  writer.scalar<float>((form.architecture + ".attention.layer_norm_rms_epsilon").c_str(),
                       GgufType::kFloat32, config["rms_norm_eps"].get<float>());
  writer.scalar<float>((form.architecture + ".rope.freq_base").c_str(), GgufType::kFloat32, 1e6F);
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const bool norm = tensor.name.find("norm") != std::string::npos;
    const float add = norm && form.architecture == "gemma3" ? 1.0F : 0.0F;
    std::vector<uint64_t> shape(tensor.shape.rbegin(), tensor.shape.rend());
    writer.tensor(gguf_name(tensor.name, form).c_str(), shape, 0,
                  f32_bytes(checkpoint, tensor, add));
  }
  return writer;
}

class GgufForms : public ::testing::TestWithParam<Form> {};

TEST_P(GgufForms, ComputeTheBitsOfTheFolder) {
  const Form& form = GetParam();
  const std::string from = golden_path(form.folder);
  json config = json::parse(read_file(from + "/config.json"));
  for (const auto& [key, value] : form.changes) config[key] = value;
  const TestFolder folder;
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", read_file(from + "/model.safetensors"));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const TestFolder other;
  const std::string path = other.write("form.gguf", gguf_of(*checkpoint, config, form).bytes());

  const auto model = open_model(folder.path());
  const auto gguf = open_model(path);
  ASSERT_TRUE(model != nullptr && gguf != nullptr);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 90; ++i) tokens.push_back(i * 37 % 200);
  // The reference multiplies both types alike.
  const Assignments reference = {"numerics=reference"};
  EXPECT_TRUE(
      same_bits(prefill_rows(*model, reference, tokens), prefill_rows(*gguf, reference, tokens)));
}

INSTANTIATE_TEST_SUITE_P(
    Families, GgufForms,
    ::testing::Values(Form{"oracle/qwen2-h56", "qwen2", {}, {}},
                      Form{"oracle/qwen3-h80", "qwen3", {}, {}},
                      Form{"oracle/gemma3-h64",
                           "gemma3",
                           {{"layer_types", nullptr}, {"query_pre_attn_scalar", 24}},
                           {{"post_attention_layernorm.weight", "post_attention_norm.weight"},
                            {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
                            {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"}}}),
    [](const auto& form) { return form.param.architecture; });

}  // namespace
}  // namespace reckon::engine
