#include "measure/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace reckon::measure {
namespace {

constexpr double kT19Call = 3.1737245307923256;      // scipy.stats.t.ppf(0.9975, 19)
constexpr double kT19Interval = 1.7291328115213682;  // scipy.stats.t.ppf(0.95, 19)
constexpr Noise kNoise{20, 0.01};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Decision decide_ok(const std::vector<double>& medians, const Noise& noise,
                   std::optional<double> claim = 0.02, bool different = true) {
  return decide({medians, noise, claim, different}).value();
}

TEST(Decide, ReportsTheNumbersOfTheRule) {
  const Decision decision = decide_ok({0.05, 0.03}, kNoise);
  EXPECT_NEAR(decision.mean_log, 0.04, 1e-15);
  EXPECT_NEAR(decision.effect, std::exp(0.04) - 1, 1e-15);
  ASSERT_TRUE(decision.band.has_value());
  const double se = 0.01 / std::sqrt(2.0);
  EXPECT_NEAR(decision.band->standard_error, se, 1e-15);
  EXPECT_NEAR(decision.band->noise_band, kT19Call * se, 1e-12);
  EXPECT_NEAR(decision.band->interval90, kT19Interval * se, 1e-12);
  EXPECT_NEAR(decision.band->smallest_detectable, (kT19Call + 0.86) * se, 1e-12);
  EXPECT_EQ(decision.call, Call::kWon);
  EXPECT_EQ(decision.missing_noise_rounds, 0);
}

TEST(Decide, WinsAndLosesJustOutsideTheBand) {
  const double edge = kT19Call * 0.01 / std::sqrt(2.0);
  EXPECT_EQ(decide_ok({edge * 1.001, edge * 1.001}, kNoise).call, Call::kWon);
  EXPECT_EQ(decide_ok({-edge * 1.001, -edge * 1.001}, kNoise).call, Call::kLost);
  EXPECT_EQ(decide_ok({edge * 0.999, edge * 0.999}, kNoise).call, Call::kInconclusive);
}

TEST(Decide, RoundsOfOtherSignAreInconclusive) {
  EXPECT_EQ(decide_ok({0.10, -0.001}, kNoise).call, Call::kInconclusive);
  EXPECT_EQ(decide_ok({0.10, 0.0}, kNoise).call, Call::kInconclusive);
  EXPECT_TRUE(decide_ok({0.10, 0.001}, kNoise).same_sign);
}

TEST(Decide, TwoOrThreeRoundsMustEachCarryTheirPart) {
  // Of two rounds each must be beyond s_m, of three beyond half of it; four have their scatter.
  EXPECT_EQ(decide_ok({0.10, 0.0099}, kNoise).call, Call::kInconclusive);
  EXPECT_EQ(decide_ok({0.10, 0.0101}, kNoise).call, Call::kWon);
  EXPECT_EQ(decide_ok({-0.10, -0.0101}, kNoise).call, Call::kLost);
  EXPECT_EQ(decide_ok({0.10, 0.10, 0.0049}, kNoise).call, Call::kInconclusive);
  EXPECT_EQ(decide_ok({0.10, 0.10, 0.0051}, kNoise).call, Call::kWon);
  EXPECT_EQ(decide_ok({0.010, 0.011, 0.012, 0.0009}, {20, 0.001}).call, Call::kWon);
}

// 2 × scipy.stats.t.sf(|mean| / SE, 19).
TEST(Decide, HasThePValueOfTheMean) {
  EXPECT_NEAR(*decide_ok({0.04, 0.04}, kNoise).p_value, 1.873806447095068e-05, 1e-16);
  EXPECT_NEAR(*decide_ok({-0.02, -0.02}, kNoise).p_value, 0.010736855039855896, 1e-14);
  EXPECT_EQ(*decide_ok({1e-6}, {20, 0}).p_value, 0);
  EXPECT_EQ(*decide_ok({0.0}, {20, 0}).p_value, 1);
  EXPECT_FALSE(decide_ok({0.04}, {1, 0}).p_value.has_value());
}

TEST(Decide, NeutralNeedsTheIntervalInsideTheClaimAndProof) {
  const Noise quiet{20, 0.001};
  EXPECT_EQ(decide_ok({0.0005, -0.0005}, quiet).call, Call::kNeutral);
  EXPECT_EQ(decide_ok({0.0005, -0.0005}, quiet, 0.02, false).call, Call::kInconclusive);
  EXPECT_EQ(decide_ok({0.0005, -0.0005}, quiet, std::nullopt).call, Call::kInconclusive);
  EXPECT_EQ(decide_ok({0.0005, -0.0005}, quiet, 0.001).call, Call::kInconclusive);
}

TEST(Decide, NeutralEdgeIsTheLogarithmOfTheClaim) {
  const double half = kT19Interval * 0.01 / std::sqrt(2.0);
  const double centre = std::log1p(0.02) - half;
  EXPECT_EQ(decide_ok({centre - 1e-9, centre - 1e-9}, kNoise).call, Call::kNeutral);
  EXPECT_EQ(decide_ok({centre + 1e-9, centre + 1e-9}, kNoise).call, Call::kInconclusive);
  EXPECT_EQ(decide_ok({1e-9 - centre, 1e-9 - centre}, kNoise).call, Call::kNeutral);
}

TEST(Decide, ASmallButCertainLossIsLostEvenInsideTheClaim) {
  EXPECT_EQ(decide_ok({-0.01, -0.01}, {20, 0.001}, 0.02).call, Call::kLost);
}

TEST(Decide, FewNoiseRoundsAreInconclusive) {
  const Decision decision = decide_ok({0.5, 0.5}, {19, 0.001});
  EXPECT_EQ(decision.call, Call::kInconclusive);
  EXPECT_EQ(decision.missing_noise_rounds, 1);
  EXPECT_TRUE(decision.band.has_value());
  const Decision none = decide_ok({0.5, 0.5}, {});
  EXPECT_EQ(none.call, Call::kInconclusive);
  EXPECT_EQ(none.missing_noise_rounds, 20);
  EXPECT_FALSE(none.band.has_value());
}

TEST(Decide, ScatterCountsFromFourRoundsOn) {
  const std::vector<double> three = {0.01, 0.10, 0.19};
  EXPECT_NEAR(decide_ok(three, kNoise).band->standard_error, 0.01 / std::sqrt(3.0), 1e-15);
  EXPECT_EQ(decide_ok(three, kNoise).call, Call::kWon);
  const std::vector<double> four = {0.01, 0.10, 0.19, 0.10};
  const double scatter = std::sqrt((0.09 * 0.09 * 2) / 3);
  EXPECT_NEAR(decide_ok(four, kNoise).band->standard_error, scatter / 2, 1e-12);
  EXPECT_EQ(decide_ok(four, kNoise).call, Call::kInconclusive);
  const std::vector<double> calm = {0.10, 0.1001, 0.1, 0.1};
  EXPECT_NEAR(decide_ok(calm, kNoise).band->standard_error, 0.01 / 2, 1e-15);
}

TEST(Decide, OneRoundIsEnoughToSpeak) {
  EXPECT_EQ(decide_ok({0.04}, kNoise).call, Call::kWon);
  EXPECT_EQ(decide_ok({0.03}, kNoise).call, Call::kInconclusive);
}

TEST(Decide, NoNoiseIsTakenAtItsWord) {
  const Noise none{20, 0};
  EXPECT_EQ(decide_ok({1e-6}, none).call, Call::kWon);
  EXPECT_EQ(decide_ok({0.0}, none).call, Call::kNeutral);
}

TEST(Decide, RefusesWhatIsNotEvidence) {
  EXPECT_FALSE(decide({{}, kNoise, 0.02, true}).ok());
  const std::vector<double> broken = {0.1, kNan};
  EXPECT_FALSE(decide({broken, kNoise, 0.02, true}).ok());
  const std::vector<double> good = {0.1};
  for (const double claim : {0.0, -0.02, kNan, std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(decide({good, kNoise, claim, true}).ok()) << claim;
  }
  EXPECT_FALSE(decide({good, {20, kNan}, 0.02, true}).ok());
  EXPECT_FALSE(decide({good, {20, -1}, 0.02, true}).ok());
}

TEST(Design, TheSmallestEffectOfTwoRoundsIsTheFormulas) {
  for (const int rounds : {1, 2}) {
    EXPECT_NEAR(design_band(kNoise, rounds).value().smallest_detectable,
                (kT19Call + 0.86) * 0.01 / std::sqrt(rounds), 1e-12);
  }
}

// 80% power found by bisection over 200000 simulated queues of normal rounds with numpy, in s_m at
// K = 20: what is stated must not be less.
TEST(Design, MoreRoundsStateWhatTheirSignsAndScatterCost) {
  struct Known {
    int rounds;
    double noises;
  };
  constexpr Known kKnown[] = {{3, 2.416}, {4, 2.325}, {5, 2.103},  {6, 2.004},
                              {7, 1.993}, {8, 2.032}, {10, 2.122}, {14, 2.276}};
  for (const Known& known : kKnown) {
    const double stated = design_band(kNoise, known.rounds).value().smallest_detectable / 0.01;
    EXPECT_GE(stated, known.noises * 0.995) << known.rounds;
    EXPECT_LE(stated, known.noises * 1.08) << known.rounds;
  }
}

TEST(Design, RoundsToSeeAClaim) {
  EXPECT_EQ(rounds_to_see(kNoise, 0.045).value(), 1);
  EXPECT_EQ(rounds_to_see(kNoise, 0.03).value(), 2);
  EXPECT_EQ(rounds_to_see(kNoise, 0.022).value(), 5);
  EXPECT_EQ(rounds_to_see({20, 0}, 0.02).value(), 1);
  const auto below = rounds_to_see(kNoise, 0.015);
  ASSERT_FALSE(below.ok());
  EXPECT_EQ(below.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(below.error().message,
            "no number of rounds of this size sees a gain of 1.5% on this device: they see 2% and "
            "more");
}

TEST(Design, RefusesTheImpossible) {
  EXPECT_FALSE(design_band({1, 0.01}, 2).ok());
  EXPECT_FALSE(design_band(kNoise, 0).ok());
  EXPECT_FALSE(rounds_to_see(kNoise, 0).ok());
  EXPECT_FALSE(rounds_to_see(kNoise, 1e-9).ok());
}

}  // namespace
}  // namespace reckon::measure
