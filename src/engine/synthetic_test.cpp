// Synthetic models: planned to the byte at once, refused before anything is made, and run.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "engine/random_tokens.h"
#include "engine/test_sessions.h"
#include "formats/write_folder.h"

namespace reckon::engine {
namespace {

using ::testing::HasSubstr;

ModelOptions quant(const char* scheme) {
  return {models::QuantScheme::parse(scheme).value()};
}

std::vector<int32_t> prompt_of(const LoadedModel& model, int64_t count) {
  return random_tokens(count, model.model().info().vocabulary);
}

void expect_alive(const std::vector<float>& logits, const std::string& what) {
  ASSERT_FALSE(logits.empty());
  double sum = 0, squares = 0;
  for (const float value : logits) {
    ASSERT_TRUE(std::isfinite(value)) << what;
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const auto count = static_cast<double>(logits.size());
  const double deviation = std::sqrt(squares / count - std::pow(sum / count, 2));
  EXPECT_GT(deviation, 0.3) << what;  // about 1 by construction
  EXPECT_LT(deviation, 3) << what;
}

class Synthetic : public ::testing::TestWithParam<std::string> {};

TEST_P(Synthetic, PrefillsAndDecodesFiniteLogits) {
  for (const char* scheme : {"none", "q4", "q8"}) {
    const auto model = open_model(GetParam(), quant(scheme));
    ASSERT_NE(model, nullptr);
    const std::vector<int32_t> tokens = prompt_of(*model, 40);
    const std::vector<float> prefilled = prefill_rows(*model, {}, tokens);
    expect_alive(prefilled, scheme);
    expect_alive(decode_rows(*model, {}, tokens), scheme);
  }
}

TEST_P(Synthetic, ExactIsCloseToReference) {
  for (const char* scheme : {"none", "q4", "q8"}) {
    const auto model = open_model(GetParam(), quant(scheme));
    ASSERT_NE(model, nullptr);
    const std::vector<int32_t> tokens = prompt_of(*model, 30);
    const std::vector<float> expected = prefill_rows(*model, {"numerics=reference"}, tokens);
    const std::vector<float> got = prefill_rows(*model, {"prefill.numerics=exact"}, tokens);
    ASSERT_EQ(got.size(), expected.size());
    double squares = 0, norm = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      squares += std::pow(static_cast<double>(got[i]) - expected[i], 2);
      norm += std::pow(static_cast<double>(expected[i]), 2);
    }
    EXPECT_LE(std::sqrt(squares / norm), 1e-3) << scheme;
    EXPECT_TRUE(same_bits(got, decode_rows(*model, {}, tokens))) << scheme;
  }
}

// The folder of the same seed has the same weights: no bit of the logits differs.
TEST_P(Synthetic, IsTheFolderThatItWrites) {
  const std::string name = GetParam() + ",seed=11";
  const auto made = open_model(name);
  const TestFolder folder;
  ASSERT_TRUE(write_folder(made->checkpoint(), folder.path() + "/made").ok());
  const auto read = open_model(folder.path() + "/made");
  const std::vector<int32_t> tokens = prompt_of(*made, 20);
  const std::vector<float> logits = prefill_rows(*made, {}, tokens);
  EXPECT_TRUE(same_bits(logits, prefill_rows(*read, {}, tokens)));
  EXPECT_FALSE(same_bits(logits, prefill_rows(*open_model(GetParam()), {}, tokens)));
}

std::string shape_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(info.param.find('-') + 1);
  for (char& c : name) {
    if (c == '.' || c == '-') c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Synthetic,
                         ::testing::Values("synth:tiny-llama", "synth:tiny-qwen3",
                                           "synth:tiny-qwen3.5", "synth:tiny-qwen3.5-moe"),
                         shape_name);

TEST(SyntheticModel, Plans8bToTheByteAtOnce) {
  const std::clock_t start = std::clock();  // of the processor: others may be using the machine
  const auto model = open_model("synth:llama-8b", quant("q4"));
  ASSERT_NE(model, nullptr);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
  // 36 bytes for 64 weights, and 65 norms of 4096 in float32.
  const uint64_t matrices = 8'030'261'248U - 65 * 4096;
  EXPECT_EQ(model->model().info().weight_bytes, matrices / 64 * 36 + 65 * 4096 * 4);
  EXPECT_EQ(model->allocated_bytes(), 0U);
  EXPECT_EQ(model->weight_format(), "p4");
  EXPECT_EQ(open_model("synth:llama-8b")->model().info().weight_bytes,
            matrices * 2 + 65 * 4096 * 4);
}

TEST(SyntheticModel, WhatDoesNotFitIsRefusedBeforeAnythingIsMade) {
  const std::clock_t start = std::clock();  // of the processor: others may be using the machine
  const auto model = open_model("synth:llama-8b", quant("q4"));
  const auto session = Session::create(*model, {{}, {64}, "1GB"});
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(session.error().message, HasSubstr("weights"));
  EXPECT_EQ(model->allocated_bytes(), 0U);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);
}

TEST(SyntheticModel, SaysHowDeepItIs) {
  const auto model = open_model("synth:llama-8b,layers=4");
  EXPECT_EQ(model->model().info().name, "synth:llama-8b (4 of 32 layers)");
  EXPECT_EQ(model->model().info().layers, 4);
}

TEST(SyntheticModel, HasNoTokenizer) {
  const auto model = open_model("synth:tiny-llama");
  const auto tokenizer = model->tokenizer();
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(tokenizer.error().message, HasSubstr("bench"));
}

TEST(SyntheticModel, AllocatesWhatItPlanned) {
  for (const char* scheme : {"none", "q4"}) {
    const auto model = open_model("synth:tiny-llama", quant(scheme));
    ASSERT_TRUE(model->load().ok());
    EXPECT_EQ(model->allocated_bytes(), model->model().info().weight_bytes);
  }
}

TEST(RandomTokens, AreOfTheVocabularyAndTheSameEveryTime) {
  const std::vector<int32_t> tokens = random_tokens(500, 7);
  EXPECT_THAT(tokens, ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(7))));
  const std::vector<int32_t> fewer = random_tokens(20, 7);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), tokens.begin()));
}

}  // namespace
}  // namespace reckon::engine
