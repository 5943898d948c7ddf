#include "measure/sequential.h"

#include <gtest/gtest.h>

#include <vector>

namespace reckon::measure {
namespace {

constexpr Noise kNoise{20, 0.01};
constexpr SequentialDesign kClaim{.claim = 0.03};

SequentialState after(const std::vector<double>& medians, const SequentialDesign& design = kClaim) {
  return sequential_state(kNoise, medians, design).value();
}

// The formula of the header in Python: (19 + n)/2 × log of the ratio of sums of squares; the bounds
// are log(0.95/0.0025) = 5.940 and log(0.05/0.9975) = -2.993.
TEST(Sequential, CallsTheBetterArmWhenItsRatioReachesTheBound) {
  const SequentialState one = after({0.031});
  EXPECT_EQ(one.call, SequentialCall::kGoOn);
  EXPECT_NEAR(one.log_ratio_up, 4.082247402611086, 1e-12);
  EXPECT_NEAR(one.log_ratio_down, -6.657512917802329, 1e-12);
  const SequentialState two = after({0.031, 0.028});
  EXPECT_EQ(two.call, SequentialCall::kBetter);
  EXPECT_EQ(two.rounds, 2U);
  EXPECT_NEAR(two.log_ratio_up, 6.815898888147576, 1e-12);
  EXPECT_NEAR(two.log_ratio_down, -9.350128844431081, 1e-12);
}

TEST(Sequential, IsSymmetricAndKeepsItsFirstDecision) {
  EXPECT_EQ(after({-0.031, -0.028}).call, SequentialCall::kWorse);
  const SequentialState kept = after({0.031, 0.028, -0.5, -0.5});
  EXPECT_EQ(kept.call, SequentialCall::kBetter);
  EXPECT_EQ(kept.rounds, 2U);
}

TEST(Sequential, OneRoundAloneCallsNothing) {
  const SequentialDesign large{.claim = 0.05};
  const SequentialState far = after({0.05}, large);
  EXPECT_GT(far.log_ratio_up, 5.95) << "past the bound";
  EXPECT_EQ(far.call, SequentialCall::kGoOn);
  EXPECT_EQ(after({0.05, 0.05}, large).call, SequentialCall::kBetter);
}

TEST(Sequential, GivesUpWhenBothClaimsAreUnlikely) {
  EXPECT_EQ(after({}).call, SequentialCall::kGoOn);
  const SequentialState flat = after({0.001, -0.002});
  EXPECT_EQ(flat.call, SequentialCall::kNoGain);
  // The downward claim is ruled out by the first round alone, the upward one later.
  EXPECT_EQ(after({0.012}).call, SequentialCall::kGoOn);
  EXPECT_EQ(after({0.012, 0.001}).call, SequentialCall::kNoGain);
}

TEST(Sequential, AClaimThatWasGivenUpIsNotCalled) {
  // After the first round +3% is ruled out; later rounds cannot bring it back.
  const SequentialState state = after({-0.012, 0.06, 0.06});
  EXPECT_NE(state.call, SequentialCall::kBetter);
}

TEST(Sequential, RefusesWhatHasNoGuarantee) {
  const std::vector<double> medians = {0.01};
  EXPECT_FALSE(sequential_state({19, 0.01}, medians, kClaim).ok());
  EXPECT_FALSE(sequential_state({20, 0}, medians, kClaim).ok());
  EXPECT_FALSE(sequential_state(kNoise, medians, {.claim = 0}).ok());
  EXPECT_FALSE(sequential_state(kNoise, medians, {.claim = 0.1, .false_call = 0}).ok());
  EXPECT_FALSE(sequential_state(kNoise, medians, {.claim = 0.1, .missed_claim = 0.5}).ok());
}

}  // namespace
}  // namespace reckon::measure
