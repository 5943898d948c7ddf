#include "measure/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace reckon::measure {
namespace {

TEST(ChooseNoise, LeavesOutOtherPairsAndOldRounds) {
  const std::vector<NoiseRound> rounds = {
      {0.01, 6, 1}, {0.50, 12, 1}, {-0.01, 6, 90}, {0.70, 6, 90.5}, {0.03, 6, -0.1}};
  const ChosenNoise chosen = choose_noise(rounds, {.pairs = 6}).value();
  EXPECT_EQ(chosen.used, (std::vector<size_t>{4, 0, 2}));
  EXPECT_EQ(chosen.other_pairs, 1);
  EXPECT_EQ(chosen.too_old, 1);
  EXPECT_EQ(chosen.superseded, 0);
  EXPECT_EQ(chosen.noise.rounds, 3);
  EXPECT_NEAR(chosen.noise.standard_deviation, 0.02, 1e-15);  // of 0.01, -0.01, 0.03
}

TEST(ChooseNoise, TakesTheNewest) {
  std::vector<NoiseRound> rounds;
  for (int i = 0; i < 10; ++i) rounds.push_back({i < 6 ? 1.0 + i : 0.01 * (i % 2), 4, 20.0 - i});
  const ChosenNoise chosen = choose_noise(rounds, {.pairs = 4, .newest = 4}).value();
  EXPECT_EQ(chosen.used, (std::vector<size_t>{9, 8, 7, 6}));
  EXPECT_EQ(chosen.superseded, 6);
  EXPECT_NEAR(chosen.noise.standard_deviation, 0.01 / std::sqrt(3.0), 1e-15);  // 0, 1, 0, 1
}

TEST(ChooseNoise, OfEqualAgeTheLaterOnes) {
  const std::vector<NoiseRound> rounds = {{0.1, 2, 3}, {0.2, 2, 3}, {0.3, 2, 3}};
  EXPECT_EQ(choose_noise(rounds, {.pairs = 2, .newest = 2}).value().used,
            (std::vector<size_t>{2, 1}));
}

TEST(ChooseNoise, NothingLeftIsNoNoise) {
  const ChosenNoise chosen = choose_noise({}, {.pairs = 6}).value();
  EXPECT_EQ(chosen.noise.rounds, 0);
  EXPECT_EQ(chosen.noise.missing_rounds(), kMinimumNoiseRounds);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(choose_noise(std::vector<NoiseRound>{{kNan, 6, 0}}, {.pairs = 6}).ok());
  EXPECT_FALSE(choose_noise(std::vector<NoiseRound>{{0, 6, kNan}}, {.pairs = 6}).ok());
}

}  // namespace
}  // namespace reckon::measure
