#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "formats/test_files.h"

namespace reckon::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Greedy, TakesTheHighestAndTheLowestIndexOfEquals) {
  const auto pick = pick_token(std::array{1.0F, 4.0F, 2.5F, 4.0F});
  ASSERT_TRUE(pick.ok());
  EXPECT_EQ(pick->token, 1);
  EXPECT_EQ(pick->margin, 0);
  EXPECT_EQ(pick_token(std::array{-3.0F, -1.0F, -1.5F})->token, 1);
  EXPECT_EQ(pick_token(std::array{-3.0F, -1.0F, -1.5F})->margin, 0.5F);
  EXPECT_EQ(pick_token(std::array{5.0F, 3.0F, 1.0F})->margin, 2.0F);
  EXPECT_EQ(pick_token(std::array{7.0F})->margin, 0);
}

TEST(Greedy, NamesALogitThatIsNotANumber) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto pick = pick_token(std::array{1.0F, 2.0F, bad});
    ASSERT_FALSE(pick.ok());
    EXPECT_THAT(pick.error().message, HasSubstr("token 2"));
  }
}

std::vector<int32_t> draws(double temperature, uint64_t seed, std::span<const float> logits,
                           int count) {
  auto sampler = Sampler::create({temperature, seed});
  EXPECT_TRUE(sampler.ok());
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(pick_token(logits, sampler->next())->token);
  return tokens;
}

TEST(Sampler, IsGreedyAtTemperatureZero) {
  const std::array logits{1.0F, 1.1F, 1.0F};
  EXPECT_THAT(draws(0, 1, logits, 4), ElementsAre(1, 1, 1, 1));
}

TEST(Sampler, ASeedFixesTheTokens) {
  const std::array logits{0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F, 0.0F};
  EXPECT_EQ(draws(1, 7, logits, 50), draws(1, 7, logits, 50));
  EXPECT_NE(draws(1, 7, logits, 50), draws(1, 8, logits, 50));
  // The first draws of std::mt19937_64 from seed 42 are 0.755, 0.639, 0.752 and 0.136 of 2^64.
  EXPECT_THAT(draws(1, 42, logits, 4), ElementsAre(6, 5, 6, 1));
}

TEST(Sampler, DrawsWithTheProbabilitiesOfTheSoftmax) {
  const std::array logits{0.0F, 1.0F, 2.0F, -30.0F};
  constexpr int kDraws = 40000;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    std::array<int, 4> counts{};
    for (const int32_t token : draws(temperature, 3, logits, kDraws)) {
      ++counts[static_cast<size_t>(token)];
    }
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit) / temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double p = std::exp(static_cast<double>(logits[i]) / temperature) / total;
      const double spread = 5 * std::sqrt(p * (1 - p) / kDraws) + 1e-4;
      EXPECT_NEAR(counts[i] / static_cast<double>(kDraws), p, spread);
    }
  }
}

TEST(Sampler, AlmostZeroTemperatureIsGreedy) {
  const std::array logits{1.0F, 3.0F, 2.0F};
  EXPECT_THAT(draws(1e-300, 5, logits, 3), ElementsAre(1, 1, 1));
}

TEST(Sampler, RefusesOtherTemperatures) {
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto sampler = Sampler::create({bad, 0});
    ASSERT_FALSE(sampler.ok());
    EXPECT_EQ(sampler.error().kind, ErrorKind::kUsage);
  }
}

TEST(Sampler, PicksWhatAnIndependentComputationPicks) {
  const auto cases = nlohmann::json::parse(read_file(golden_path("sampling/cases.json")));
  ASSERT_GT(cases.size(), 10U);
  for (const auto& recorded : cases) {
    auto sampler = Sampler::create({recorded["temperature"],
                                    recorded["seed"],
                                    {recorded["top_k"], recorded["top_p"], recorded["min_p"]},
                                    recorded["repeat_penalty"],
                                    recorded["repeat_window"]});
    ASSERT_TRUE(sampler.ok()) << sampler.error().message;
    const auto logits = recorded["logits"].get<std::vector<float>>();
    sampler->saw(recorded["prompt"].get<std::vector<int32_t>>());
    std::vector<int32_t> tokens;
    for (size_t i = 0; i < recorded["tokens"].size(); ++i) {
      const auto pick = sampler->pick(logits);
      ASSERT_TRUE(pick.ok()) << pick.error().message;
      tokens.push_back(pick->token);
      sampler->saw({&pick->token, 1});
    }
    EXPECT_EQ(tokens, recorded["tokens"].get<std::vector<int32_t>>()) << recorded.dump();
  }
}

TEST(Sampler, PicksTheSameOnTheHostAsWhereTheLogitsAre) {
  const std::array logits{0.5F, 2.0F, -1.0F, 2.0F, 0.0F};
  for (const double temperature : {0.0, 0.7}) {
    auto here = Sampler::create({temperature, 9});
    auto there = Sampler::create({temperature, 9});
    EXPECT_FALSE(here->needs_logits());
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(here->pick(logits)->token, pick_token(logits, there->next())->token);
    }
  }
}

TEST(Sampler, SaysWhenItNeedsTheLogits) {
  const auto needs = [](const SamplerOptions& options) {
    return Sampler::create(options)->needs_logits();
  };
  EXPECT_FALSE(needs({1, 0}));
  EXPECT_FALSE(needs({0, 0, {.top_k = 5}}));  // greedy anyway
  EXPECT_TRUE(needs({1, 0, {.top_k = 5}}));
  EXPECT_TRUE(needs({1, 0, {.top_p = 0.5}}));
  EXPECT_TRUE(needs({1, 0, {.min_p = 0.5}}));
  EXPECT_TRUE(needs({0, 0, {}, 1.1}));
  EXPECT_FALSE(needs({0, 0, {}, 1.1, 0}));
}

TEST(Sampler, PenalisesTheWindowAlone) {
  const std::array logits{4.0F, 3.0F, 2.0F};
  auto sampler = Sampler::create({0, 0, {}, 10, 2});
  ASSERT_TRUE(sampler.ok());
  sampler->saw(std::array{0, 1, 1});
  EXPECT_EQ(sampler->pick(logits)->token, 0);  // two tokens back are 1 and 1
  EXPECT_EQ(sampler->pick(logits)->margin, 2.0F);
  sampler->saw(std::array{0});
  EXPECT_EQ(sampler->pick(logits)->token, 2);
  sampler->forget();
  EXPECT_EQ(sampler->pick(logits)->token, 0);
}

TEST(Sampler, RefusesOptionsOutsideTheirRange) {
  const double nan = std::nan("");
  const SamplerOptions bad[] = {
      {1, 0, {.top_k = -1}}, {1, 0, {.top_p = 0}},   {1, 0, {.top_p = 1.1}}, {1, 0, {.top_p = nan}},
      {1, 0, {.min_p = 2}},  {1, 0, {.min_p = nan}}, {1, 0, {}, 0},          {1, 0, {}, -1},
      {1, 0, {}, nan},       {1, 0, {}, 1.1, -1}};
  for (const SamplerOptions& options : bad) {
    const auto sampler = Sampler::create(options);
    ASSERT_FALSE(sampler.ok());
    EXPECT_EQ(sampler.error().kind, ErrorKind::kUsage);
  }
}

TEST(Sampler, NamesALogitThatIsNotANumberBeforeItIsFiltered) {
  auto sampler = Sampler::create({1, 0, {.top_k = 1}, 1.5});
  const auto pick = sampler->pick(std::array{1.0F, std::numeric_limits<float>::quiet_NaN(), 2.0F});
  ASSERT_FALSE(pick.ok());
  EXPECT_THAT(pick.error().message, HasSubstr("token 1"));
}

}  // namespace
}  // namespace reckon::engine
