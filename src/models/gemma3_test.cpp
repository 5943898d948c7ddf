#include "models/gemma3.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/host_placer.h"
#include "models/test_checkpoints.h"

namespace reckon::models {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string error_of(TinyFolder& folder) {
  const Checkpoint checkpoint = folder.open();
  HostPlacer placer;
  const auto model = build_model(checkpoint, placer);
  return model.ok() ? "" : model.error().message;
}

TEST(Gemma3, NamesWhatItDoesNotCompute) {
  const std::vector<std::pair<std::string, json>> refused = {
      {"final_logit_softcapping", 30.0},
      {"attn_logit_softcapping", 50.0},
      {"use_bidirectional_attention", true},
      {"attention_bias", true},
      {"hidden_activation", "silu"},
      {"sliding_window", 0},
      {"sliding_window_pattern", 0},
      {"query_pre_attn_scalar", -1},
      {"rope_local_base_freq", 1.0},
      {"layer_types", json{"chunked_attention"}},
      {"layer_types", json{"full_attention", "full_attention"}},
      {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8}}},
      {"rope_parameters", {{"full_attention", {{"rope_type", "linear"}, {"rope_theta", 1e6}}}}}};
  for (const auto& [key, value] : refused) {
    TinyFolder folder("gemma3_text");
    folder.config[key] = value;
    EXPECT_THAT(error_of(folder), HasSubstr("'" + key)) << value;
  }
  TinyFolder plain("gemma3_text");
  EXPECT_EQ(error_of(plain), "");
  TinyFolder without("gemma3_text");
  without.shapes.erase("model.layers.0.post_feedforward_layernorm.weight");
  EXPECT_THAT(error_of(without), HasSubstr("post_feedforward_layernorm"));
}

// 1 + what is stored, which is all zeros but for the first byte of one tensor.
TEST(Gemma3, AFoldersNormsAreZeroCentred) {
  TinyFolder folder("gemma3_text");
  const Checkpoint checkpoint = folder.open();
  HostPlacer placer;
  ASSERT_TRUE(build_model(checkpoint, placer).ok());
  ASSERT_TRUE(placer.load({}).ok());
  int norms = 0;
  for (const PlacedWeight& weight : placer.weights()) {
    if (weight.name.find("norm") == std::string::npos) continue;
    ++norms;
    const auto* values = static_cast<const float*>(weight.placed.data);
    for (int64_t i = 0; i < weight.placed.k; ++i) EXPECT_EQ(values[i], 1.0F) << weight.name;
  }
  EXPECT_EQ(norms, 7);
}

TEST(Qwen2, NeedsItsBiases) {
  TinyFolder folder("qwen2");
  EXPECT_EQ(error_of(folder), "");
  TinyFolder without("qwen2");
  without.shapes.erase("model.layers.0.self_attn.k_proj.bias");
  EXPECT_THAT(error_of(without), HasSubstr("k_proj.bias"));
  TinyFolder windowed("qwen2");
  windowed.config["use_sliding_window"] = true;
  EXPECT_THAT(error_of(windowed), HasSubstr("use_sliding_window"));
}

}  // namespace
}  // namespace reckon::models
