// Exact numerics end to end: the bits of each row of logits depend neither on the chunk, nor on
// the number of threads, nor on whether it was prefilled or decoded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

void expect_one_result(const LoadedModel& model, const std::vector<int32_t>& tokens) {
  const std::vector<float> expected = decode_rows(model, {}, tokens);
  ASSERT_EQ(expected.size(), tokens.size() * static_cast<size_t>(model.model().info().vocabulary));
  for (const int chunk : {1, 7, 64, 512}) {
    for (const int threads : {1, 2, 3}) {
      const Assignments assignments{"prefill.numerics=exact",
                                    fmt::format("prefill.chunk={}", chunk),
                                    fmt::format("cpu.threads={}", threads)};
      EXPECT_TRUE(same_bits(prefill_rows(model, assignments, tokens), expected))
          << fmt::format("{}", fmt::join(assignments, " "));
    }
  }
}

class Exactness : public ::testing::TestWithParam<std::string> {};

TEST_P(Exactness, HoldsForChunksThreadsAndDecode) {
  const auto model = open_model(golden_path(GetParam()));
  ASSERT_NE(model, nullptr);
  expect_one_result(*model, longest_prompt(*model));
}

TEST_P(Exactness, HoldsWithoutVectorInstructions) {
  const auto model = open_model(golden_path(GetParam()));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = longest_prompt(*model);
  const std::vector<float> expected = decode_rows(*model, {"cpu.isa=scalar"}, tokens);
  for (const char* chunk : {"prefill.chunk=1", "prefill.chunk=13", "prefill.chunk=512"}) {
    EXPECT_TRUE(
        same_bits(prefill_rows(*model, {"prefill.numerics=exact", "cpu.isa=scalar", chunk}, tokens),
                  expected))
        << chunk;
  }
}

TEST_P(Exactness, CompositionsGiveTheBitsOfTheirParts) {
  const auto model = open_model(golden_path(GetParam()));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = longest_prompt(*model);
  const std::vector<float> expected = decode_rows(*model, {}, tokens);
  for (const char* setting : {"kernel.add_rms_norm=parts", "kernel.add=reference"}) {
    EXPECT_TRUE(same_bits(decode_rows(*model, {setting}, tokens), expected)) << setting;
    EXPECT_TRUE(
        same_bits(prefill_rows(*model, {"prefill.numerics=exact", setting}, tokens), expected))
        << setting;
  }
}

TEST_P(Exactness, EveryClassRepeatsItself) {
  const auto model = open_model(golden_path(GetParam()));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = longest_prompt(*model);
  for (const char* numerics :
       {"numerics=reference", "prefill.numerics=exact", "prefill.numerics=fast"}) {
    EXPECT_TRUE(same_bits(prefill_rows(*model, {numerics}, tokens),
                          prefill_rows(*model, {numerics}, tokens)))
        << numerics;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Exactness, ::testing::ValuesIn(oracle_models()), test_name);

class ExactnessOfRealModels : public ::testing::TestWithParam<std::string> {};

TEST_P(ExactnessOfRealModels, HoldsForChunksThreadsAndDecode) {
  RECKON_REQUIRE_MODEL(GetParam());
  const auto model = open_model(real_model(GetParam()));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = prose_tokens(*model, 100);
  const std::vector<float> expected = decode_rows(*model, {}, tokens);
  for (const char* chunk :
       {"prefill.chunk=1", "prefill.chunk=7", "prefill.chunk=64", "prefill.chunk=512"}) {
    EXPECT_TRUE(
        same_bits(prefill_rows(*model, {"prefill.numerics=exact", chunk}, tokens), expected))
        << chunk;
  }
  for (const char* threads : {"cpu.threads=1", "cpu.threads=3"}) {
    EXPECT_TRUE(
        same_bits(prefill_rows(*model, {"prefill.numerics=exact", threads}, tokens), expected))
        << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Text, ExactnessOfRealModels, ::testing::ValuesIn(real_models()),
                         test_name);

}  // namespace
}  // namespace reckon::engine
