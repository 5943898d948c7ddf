#include "models/dense_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "models/host_placer.h"
#include "models/model.h"
#include "models/test_checkpoints.h"

namespace reckon::models {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

DenseFamily llama() {
  return {
      .name = "llama", .qk_norm = QkNorm::kNone, .gguf_pairing = kernels::RopePairing::kAdjacent};
}

std::string error_of(TinyFolder& folder) {
  const Checkpoint checkpoint = folder.open();
  HostPlacer placer;
  const auto model = build_model(checkpoint, placer);
  return model.ok() ? "" : model.error().message;
}

std::string error_of(const GgufWriter& writer) {
  const TestFolder folder;
  const auto checkpoint = Checkpoint::open(folder.write("tiny.gguf", writer.bytes()));
  if (!checkpoint.ok()) return checkpoint.error().message;
  HostPlacer placer;
  const auto model = build_model(*checkpoint, placer);
  return model.ok() ? "" : model.error().message;
}

TEST(DenseConfig, ReadsAFolder) {
  TinyFolder folder;
  const Checkpoint checkpoint = folder.open();
  const auto config = read_dense_config(checkpoint, llama());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->hidden, 8);
  EXPECT_EQ(config->inner, 12);
  EXPECT_EQ(config->heads, 2);
  EXPECT_EQ(config->kv_heads, 1);
  EXPECT_EQ(config->head_dim, 4);
  EXPECT_EQ(config->vocabulary, 10);
  EXPECT_EQ(config->context_limit, 64);
  EXPECT_EQ(config->epsilon, 1e-5F);
  EXPECT_EQ(config->rope_base, 10000.0);
  EXPECT_EQ(config->pairing, kernels::RopePairing::kHalf);
  EXPECT_EQ(config->head, Head::kOwn);
}

TEST(DenseConfig, FillsInWhatAFolderLeavesOut) {
  TinyFolder folder;
  for (const char* key : {"num_key_value_heads", "head_dim", "rope_theta", "hidden_act"}) {
    folder.config.erase(key);
  }
  folder.config["rope_scaling"] = nullptr;
  const Checkpoint checkpoint = folder.open();
  const auto config = read_dense_config(checkpoint, llama());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->kv_heads, 2);
  EXPECT_EQ(config->head_dim, 4);
  EXPECT_EQ(config->rope_base, 10000.0);
}

TEST(DenseConfig, SaysThatTheHiddenSizeIsNoMultipleOfTheHeads) {
  TinyFolder folder;
  folder.config.erase("head_dim");
  folder.config["num_attention_heads"] = 3;
  EXPECT_THAT(error_of(folder),
              HasSubstr("a hidden size of 8 is not a multiple of 3 attention heads"));
}

TEST(DenseConfig, FindsTheRopeBaseInsideRopeParameters) {
  TinyFolder folder;
  folder.config.erase("rope_theta");
  folder.config["rope_parameters"] = {{"rope_theta", 5e5}, {"rope_type", "default"}};
  const Checkpoint checkpoint = folder.open();
  const auto config = read_dense_config(checkpoint, llama());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->rope_base, 5e5);
}

TEST(DenseConfig, ReadsGguf) {
  const TestFolder folder;
  GgufWriter writer = tiny_gguf_llama();
  writer.string("general.name", "Tiny");
  writer.scalar<float>("llama.rope.freq_base", GgufType::kFloat32, 1e5F);
  const auto checkpoint = Checkpoint::open(folder.write("tiny.gguf", writer.bytes()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto config = read_dense_config(*checkpoint, llama());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->name, "Tiny");
  EXPECT_EQ(config->head_dim, 4);
  EXPECT_EQ(config->vocabulary, 10);
  EXPECT_EQ(config->rope_base, 1e5);
  EXPECT_EQ(config->pairing, kernels::RopePairing::kAdjacent);
  EXPECT_EQ(config->head, Head::kTied);
}

struct Refusal {
  const char* key;
  json value;
  const char* named;  // what the message must hold
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.key << " = " << refusal.value;
}

class FolderRefusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(FolderRefusals, NameTheKey) {
  TinyFolder folder;
  folder.config[GetParam().key] = GetParam().value;
  const std::string error = error_of(folder);
  EXPECT_THAT(error, HasSubstr(GetParam().named));
  EXPECT_THAT(error, HasSubstr("reckon_formats_"));  // the folder
  EXPECT_THAT(error, ::testing::Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    All, FolderRefusals,
    ::testing::Values(
        Refusal{"rope_scaling", json{{"rope_type", "llama3"}, {"factor", 8.0}}, "llama3"},
        Refusal{"rope_scaling", json{{"type", "linear"}, {"factor", 2.0}}, "rope_scaling.type"},
        Refusal{"rope_scaling", json{{"factor", 2.0}}, "rope_scaling"},
        Refusal{"rope_parameters", json{{"rope_type", "yarn"}}, "rope_parameters.rope_type"},
        Refusal{"rope_parameters", json{{"rope_theta", 5e5}},
                "'rope_theta' is 10000, but 'rope_parameters.rope_theta' is 500000"},
        Refusal{"attn_logit_softcapping", 50.0, "'attn_logit_softcapping' is set"},
        Refusal{"final_logit_softcapping", 30.0, "final_logit_softcapping"},
        Refusal{"clip_qkv", 8.0, "clip_qkv"}, Refusal{"logits_scaling", 8, "logits_scaling"},
        Refusal{"attention_multiplier", 0.015, "attention_multiplier"},
        Refusal{"residual_multiplier", 0.22, "residual_multiplier"},
        Refusal{"num_experts", 8, "num_experts"}, Refusal{"alibi", true, "alibi"},
        Refusal{"num_local_experts", "many", "num_local_experts"},
        Refusal{"partial_rotary_factor", 0.5, "partial_rotary_factor"},
        Refusal{"attention_bias", true, "attention_bias"}, Refusal{"mlp_bias", true, "mlp_bias"},
        Refusal{"use_sliding_window", true, "use_sliding_window"},
        Refusal{"sliding_window", 32, "sliding_window"},
        Refusal{"layer_types", json{"sliding_attention"}, "layer_types"},
        Refusal{"hidden_act", "gelu", "hidden_act"},
        Refusal{"num_attention_heads", 0, "attention heads"},
        Refusal{"num_key_value_heads", 3, "KV heads"},
        Refusal{"num_key_value_heads", 0, "KV heads"}, Refusal{"head_dim", 5, "head size"},
        Refusal{"head_dim", -4, "head size"}, Refusal{"hidden_size", 0, "hidden size"},
        Refusal{"hidden_size", int64_t{1} << 62, "hidden size"},
        Refusal{"hidden_size", "8", "hidden_size"},
        Refusal{"vocab_size", int64_t{1} << 40, "vocabulary"},
        Refusal{"intermediate_size", -1, "MLP width"},
        Refusal{"num_hidden_layers", 1000000000, "layers"},
        Refusal{"max_position_embeddings", int64_t{1} << 60, "context length"},
        Refusal{"rms_norm_eps", 0.0, "epsilon"}, Refusal{"rms_norm_eps", -1.0, "epsilon"},
        Refusal{"rope_theta", 0.0, "rope base"}));

TEST(DenseConfig, TakesForeignKeysThatDoNothing) {
  TinyFolder folder;
  for (const char* key : {"attn_logit_softcapping", "clip_qkv", "num_experts"}) {
    folder.config[key] = nullptr;
  }
  folder.config["residual_multiplier"] = 1;
  folder.config["logits_scaling"] = 1.0;
  folder.config["num_local_experts"] = 0;
  folder.config["alibi"] = false;
  folder.config["rope_theta"] = 10000.0;
  folder.config["rope_parameters"] = json{{"rope_type", "default"}, {"rope_theta", 10000}};
  EXPECT_EQ(error_of(folder), "");
}

class GgufRefusals : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufRefusals, NameTheKey) {
  GgufWriter writer = tiny_gguf_llama();
  writer.scalar<uint32_t>(GetParam(), GgufType::kUint32, 2);
  EXPECT_THAT(error_of(writer), HasSubstr(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, GgufRefusals,
                         ::testing::Values("llama.rope.scaling.factor", "llama.expert_count",
                                           "llama.attention.sliding_window", "llama.logit_scale",
                                           "llama.vocab_size", "llama.rope.dimension_count",
                                           "llama.attention.value_length"));

TEST(DenseConfig, RefusesScaledRopeInGguf) {
  GgufWriter scaled = tiny_gguf_llama();
  scaled.string("llama.rope.scaling.type", "linear");
  EXPECT_THAT(error_of(scaled), HasSubstr("llama.rope.scaling.type"));

  GgufWriter plain = tiny_gguf_llama();
  plain.string("llama.rope.scaling.type", "none");
  EXPECT_EQ(error_of(plain), "");

  GgufWriter factors = tiny_gguf_llama();
  factors.tensor("rope_freqs.weight", {2}, 0, std::string(8, '\0'));
  EXPECT_THAT(error_of(factors), HasSubstr("rope_freqs.weight"));
}

}  // namespace
}  // namespace reckon::models
