#include "models/hybrid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/host_placer.h"
#include "models/hybrid_state.h"
#include "models/test_edited_folder.h"

namespace reckon::models {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Built {
  std::string error;
  ModelInfo info;
};

Built build(EditedFolder& folder, const BuildOptions& options = {.draft_head = true}) {
  const auto checkpoint = Checkpoint::open(folder.write());
  if (!checkpoint.ok()) return {checkpoint.error().message, {}};
  HostPlacer placer;
  const auto model = build_model(*checkpoint, placer, options);
  if (!model.ok()) return {model.error().message, {}};
  return {"", (*model)->info()};
}

// Of the first layer of each kind, of the head, and what is of no layer.
bool is_looked_at(const std::string& tensor) {
  if (tensor.find("experts.") != std::string::npos &&
      tensor.find("experts.1.") == std::string::npos) {
    return tensor.starts_with("mtp.");
  }
  return !tensor.starts_with("model.layers.") || tensor.starts_with("model.layers.0.") ||
         tensor.starts_with("model.layers.3.");
}

class Hybrid : public ::testing::TestWithParam<const char*> {};

TEST_P(Hybrid, BuildsARecordedFolder) {
  EditedFolder folder(GetParam());
  const Built whole = build(folder);
  EXPECT_EQ(whole.error, "");
  EXPECT_TRUE(whole.info.has_draft_head);
  EXPECT_TRUE(whole.info.notes.empty());
  const Built without = build(folder, {});
  EXPECT_EQ(without.error, "");
  EXPECT_FALSE(without.info.has_draft_head);
  EXPECT_LT(without.info.weight_bytes, whole.info.weight_bytes);
  EXPECT_THAT(without.info.notes, ElementsAre(HasSubstr("left out the head that drafts tokens")));
}

TEST_P(Hybrid, NamesAMissingTensor) {
  const EditedFolder whole(GetParam());
  EditedFolder folder(GetParam());
  int64_t looked_at = 0;
  for (const auto& [name, tensor] : whole.tensors) {
    if (!is_looked_at(name)) continue;
    folder.tensors.erase(name);
    // Without this one there is no head, and its other tensors are left over.
    const std::string named = name == "mtp.fc.weight" ? "mtp." : name;
    const bool fused = name.ends_with("experts.gate_up_proj");
    EXPECT_THAT(build(folder).error, HasSubstr(fused ? "experts.0.gate_proj" : named));
    folder.tensors[name] = tensor;
    ++looked_at;
  }
  EXPECT_GT(looked_at, 40);
}

TEST_P(Hybrid, NamesATensorOfAnotherShape) {
  const EditedFolder whole(GetParam());
  EditedFolder folder(GetParam());
  for (const auto& [name, tensor] : whole.tensors) {
    if (!is_looked_at(name)) continue;
    std::vector<int64_t>& shape = folder.tensors[name].shape;
    shape.back() /= 2;
    shape.insert(shape.begin(), 2);
    EXPECT_THAT(build(folder).error, HasSubstr(name));
    shape = tensor.shape;
  }
}

TEST_P(Hybrid, NamesALeftOverTensor) {
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.weight", "model.layers.3.linear_attn.A_log",
        "model.layers.0.linear_attn.in_proj.weight", "mtp.layers.1.input_layernorm.weight"}) {
    EditedFolder folder(GetParam());
    folder.tensors[name] = folder.tensors["model.norm.weight"];
    EXPECT_THAT(build(folder).error, HasSubstr(name));
  }
}

TEST_P(Hybrid, NamesAConfigurationThatItDoesNotCompute) {
  const std::vector<std::pair<std::string, json>> refused = {
      {"attention_bias", true},
      {"hidden_act", "gelu"},
      {"attn_output_gate", false},
      {"mtp_num_hidden_layers", 2},
      {"mtp_use_dedicated_embeddings", true},
      {"linear_conv_kernel_dim", 1},
      {"layer_types", json{"linear_attention"}},
      {"logit_scale", 0.5},
      {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4}}}};
  for (const auto& [key, value] : refused) {
    EditedFolder folder(GetParam());
    folder.config[key] = value;
    EXPECT_THAT(build(folder).error, HasSubstr(key)) << value;
  }
  for (const double share : {0.1, 2.0}) {
    EditedFolder folder(GetParam());
    folder.config["rope_parameters"]["partial_rotary_factor"] = share;
    EXPECT_THAT(build(folder).error, HasSubstr("partial_rotary_factor")) << share;
  }
  const std::vector<std::pair<std::string, std::string>> sizes = {
      {"num_hidden_layers", "layers of 0"},
      {"hidden_size", "hidden size of 0"},
      {"num_key_value_heads", "KV heads of 0"},
      {"linear_num_key_heads", "key heads of 0"},
      {"linear_value_head_dim", "value head size of 0"},
      {"vocab_size", "vocabulary of 0"}};
  for (const auto& [key, problem] : sizes) {
    EditedFolder folder(GetParam());
    folder.config[key] = 0;
    EXPECT_THAT(build(folder).error, HasSubstr(problem));
    folder.config.erase(key);
    EXPECT_THAT(build(folder).error, HasSubstr(key));
  }
  EditedFolder odd(GetParam());
  odd.config["linear_num_value_heads"] = 5;
  EXPECT_THAT(build(odd).error, HasSubstr("5 linear attention value heads are not a multiple"));
}

std::string family_name(const ::testing::TestParamInfo<const char*>& param) {
  const std::string folder = param.param;
  return folder.substr(folder.find('/') + 1, folder.find('-') - folder.find('/') - 1);
}

INSTANTIATE_TEST_SUITE_P(Golden, Hybrid,
                         ::testing::Values("oracle/qwen3_5-s0", "oracle/qwen3_5_moe-s0",
                                           "oracle/qwen3_next-s0"),
                         family_name);

TEST(HybridExperts, AreNamedWhereTheConfigurationIsWrong) {
  const std::vector<std::pair<std::string, json>> refused = {{"num_experts", 0},
                                                             {"num_experts_per_tok", 9},
                                                             {"decoder_sparse_step", 2},
                                                             {"mlp_only_layers", json{1}}};
  for (const auto& [key, value] : refused) {
    EditedFolder folder("oracle/qwen3_next-s0");
    folder.config[key] = value;
    const std::string error = build(folder).error;
    EXPECT_THAT(error, HasSubstr(key.starts_with("num_experts") ? "experts" : key)) << value;
  }
  EditedFolder dense("oracle/qwen3_5-s0");
  dense.config["num_experts"] = 8;
  EXPECT_THAT(build(dense).error, HasSubstr("num_experts"));
}

TEST(HybridExperts, OfOneTensorEachAreOfOneType) {
  EditedFolder folder("oracle/qwen3_5_moe-s0");
  const std::string name = "model.layers.0.mlp.experts.2.up_proj.weight";
  EditedFolder::Tensor& tensor = folder.tensors[name];
  tensor.dtype = "F16";
  EXPECT_THAT(build(folder).error, HasSubstr("'" + name + "' is f16; expected bf16"));
}

TEST(HybridFolders, MayHoldAVisionTower) {
  EditedFolder folder("oracle/qwen3_5-s1");
  std::map<std::string, EditedFolder::Tensor> renamed;
  for (auto& [name, tensor] : folder.tensors) {
    const bool text = name.starts_with("model.");
    renamed[text ? "model.language_model." + name.substr(6) : name] = tensor;
  }
  renamed["model.visual.blocks.0.weight"] = renamed["mtp.norm.weight"];
  folder.tensors = std::move(renamed);
  json nested = folder.config;
  folder.config = {{"model_type", "qwen3_5"}, {"text_config", nested}};
  const Built built = build(folder);
  EXPECT_EQ(built.error, "");
  EXPECT_EQ(built.info.family, "qwen3_5");
  EXPECT_THAT(built.info.notes, ElementsAre(HasSubstr("vision tower (1 tensors)")));
}

TEST(HybridFolders, WithoutLayerTypesAttendAtAnInterval) {
  EditedFolder folder("oracle/qwen3_5-s1");
  folder.config.erase("layer_types");
  EXPECT_EQ(build(folder).error, "");  // every fourth
  folder.config["full_attention_interval"] = 2;
  EXPECT_THAT(build(folder).error, HasSubstr("model.layers.1.self_attn"));
}

// ---- state ----

TEST(HybridState, IsDeclaredWithHowFarItGoesBack) {
  HybridConfig config;
  config.layers = {HybridLayerKind::kDelta, HybridLayerKind::kDelta, HybridLayerKind::kAttention};
  config.kv_heads = 2;
  config.head_dim = 8;
  config.key_heads = 1;
  config.value_heads = 3;
  config.key_dim = 4;
  config.value_dim = 5;
  config.conv_width = 4;
  const auto specs = hybrid_state_specs(config, {.capacity = 100, .rollback = 6, .drafts = true});
  ASSERT_EQ(specs.size(), 4U);
  for (const size_t cache : {0U, 1U}) {  // of one layer and the draft head
    EXPECT_EQ(specs[cache].rows * specs[cache].columns, 100 * 2 * (2 * 8));
    EXPECT_EQ(rollback_of(specs[cache]), std::nullopt);
  }
  EXPECT_EQ(specs[2].rows, 3 + 6);
  EXPECT_EQ(specs[2].columns, 2 * (2 * 4 + 3 * 5));
  EXPECT_EQ(rollback_of(specs[2]), 6);
  EXPECT_EQ(specs[3].rows, 6 + 1);
  EXPECT_EQ(specs[3].columns, 2 * 3 * 4 * 5);
  EXPECT_EQ(rollback_of(specs[3]), 6);
  const auto plain = hybrid_state_specs(config, {.capacity = 100});
  EXPECT_EQ(plain[0].columns, 2 * 8);
  EXPECT_EQ(plain[3].rows, 1);
  EXPECT_EQ(rollback_of(plain[3]), 0);
}

}  // namespace
}  // namespace reckon::models
