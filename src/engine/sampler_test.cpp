#include "engine/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

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

}  // namespace
}  // namespace reckon::engine
