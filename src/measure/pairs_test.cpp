#include "measure/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "measure/noise.h"

namespace reckon::measure {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(LogRatio, IsAboveZeroForTheBetterArm) {
  EXPECT_DOUBLE_EQ(log_ratio(100, 110, Better::kHigher).value(), std::log(110) - std::log(100));
  EXPECT_LT(log_ratio(100, 110, Better::kLower).value(), 0);
  EXPECT_GT(log_ratio(100, 90, Better::kLower).value(), 0);
  EXPECT_EQ(log_ratio(5, 5, Better::kLower).value(), 0);
}

TEST(LogRatio, RefusesWhatHasNoLogarithm) {
  for (const double bad : {0.0, -1.0, kNan, kInfinity, -kInfinity}) {
    EXPECT_FALSE(log_ratio(bad, 1, Better::kHigher).ok()) << bad;
    EXPECT_FALSE(log_ratio(1, bad, Better::kHigher).ok()) << bad;
  }
  EXPECT_TRUE(log_ratio(5e-324, 1e308, Better::kHigher).ok());
}

TEST(Median, OfOddAndEvenCounts) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}).value(), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}).value(), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}).value(), 7);
  EXPECT_FALSE(median({}).ok());
  EXPECT_FALSE(median(std::vector<double>{1, kNan}).ok());
}

TEST(RoundMedian, LeavesWarmupsOut) {
  const std::vector<Pair> pairs = {
      {100, 1, Order::kBaseFirst, true},    {100, 102, Order::kBaseFirst, false},
      {100, 104, Order::kArmFirst, false},  {100, 106, Order::kBaseFirst, false},
      {100, 103, Order::kBaseFirst, false},
  };
  // Base first 2%, 6% and 3%, arm first 4%.
  EXPECT_NEAR(round_median(pairs, Better::kHigher).value(), std::log(1.03 * 1.04) / 2, 1e-12);
}

TEST(RoundMedian, TheSlotCancels) {
  // The arm is 2% faster, whatever runs second is 3% slower, and one pair went astray.
  std::vector<Pair> pairs;
  for (const Order order : balanced_order(6, 5)) {
    const double slot = 0.97;
    const bool base_first = order == Order::kBaseFirst;
    pairs.push_back({base_first ? 100 : 100 * slot, base_first ? 102 * slot : 102, order, false});
  }
  EXPECT_NEAR(round_median(pairs, Better::kHigher).value(), std::log(1.02), 1e-12);
  pairs[2].arm *= 0.5;
  EXPECT_NEAR(round_median(pairs, Better::kHigher).value(), std::log(1.02), 1e-12);
}

TEST(RoundMedian, OfOneOrderIsItsMedian) {
  const std::vector<Pair> pairs = {{100, 102, Order::kArmFirst, false},
                                   {100, 104, Order::kArmFirst, false},
                                   {100, 103, Order::kArmFirst, false}};
  EXPECT_NEAR(round_median(pairs, Better::kHigher).value(), std::log(1.03), 1e-12);
  EXPECT_NEAR(round_median(pairs, Better::kLower).value(), -std::log(1.03), 1e-12);
}

TEST(RoundMedian, NamesTheBrokenPairAndRefusesNone) {
  const std::vector<Pair> broken = {{100, 102, Order::kBaseFirst, false},
                                    {100, 0, Order::kArmFirst, false}};
  const auto result = round_median(broken, Better::kHigher);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("pair 2"), std::string::npos) << result.error().message;
  EXPECT_FALSE(round_median({}, Better::kHigher).ok());
  const std::vector<Pair> warmups = {{100, 102, Order::kBaseFirst, true}};
  EXPECT_FALSE(round_median(warmups, Better::kHigher).ok());
}

TEST(BalancedOrder, EveryTwoPairsHoldBothOrders) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<Order> order = balanced_order(12, seed);
    ASSERT_EQ(order.size(), 12U);
    for (size_t i = 0; i < order.size(); i += 2) EXPECT_NE(order[i], order[i + 1]);
  }
}

TEST(BalancedOrder, DependsOnTheSeedOnly) {
  EXPECT_EQ(balanced_order(40, 9), balanced_order(40, 9));
  std::set<std::vector<Order>> distinct;
  for (uint64_t seed = 0; seed < 20; ++seed) distinct.insert(balanced_order(40, seed));
  EXPECT_EQ(distinct.size(), 20U);
  // The published stream of SplitMix64 from seed 0 starts e220a8397b1dcdaf, 6e789e6aa1b965f4.
  const std::vector<Order> expected = {Order::kArmFirst, Order::kBaseFirst, Order::kBaseFirst,
                                       Order::kArmFirst};
  EXPECT_EQ(balanced_order(4, 0), expected);
}

TEST(BalancedOrder, OddAndEmptyCounts) {
  const std::vector<Order> order = balanced_order(5, 1);
  ASSERT_EQ(order.size(), 5U);
  const auto base_first = std::count(order.begin(), order.end(), Order::kBaseFirst);
  EXPECT_TRUE(base_first == 2 || base_first == 3);
  EXPECT_TRUE(balanced_order(0, 1).empty());
  EXPECT_TRUE(balanced_order(-3, 1).empty());
}

TEST(SlotTerm, FindsASlowSecondSlot) {
  // The arm is 2% faster and whatever runs second is 1% slower.
  std::vector<Pair> pairs;
  for (const Order order : balanced_order(8, 3)) {
    const double base = order == Order::kArmFirst ? 99 : 100;
    const double arm = order == Order::kBaseFirst ? 102 * 0.99 : 102;
    pairs.push_back({base, arm, order, false});
  }
  const SlotTerm term = slot_term(pairs, Better::kHigher).value();
  EXPECT_NEAR(term.log_units, std::log(0.99), 1e-12);
  EXPECT_NEAR(term.standard_error, 0, 1e-12);
  EXPECT_NEAR(round_median(pairs, Better::kHigher).value(), std::log(1.02), 1e-12);
}

TEST(SlotTerm, StandardErrorIsWithinEachOrder) {
  const double e = std::exp(1.0);
  // d: 0 and 2 with the arm second, 1 and 1 with it first.
  const std::vector<Pair> pairs = {{1, 1, Order::kBaseFirst, false},
                                   {1, e, Order::kArmFirst, false},
                                   {1, e * e, Order::kBaseFirst, false},
                                   {1, e, Order::kArmFirst, false},
                                   {1, 50, Order::kArmFirst, true}};
  const SlotTerm term = slot_term(pairs, Better::kHigher).value();
  EXPECT_NEAR(term.log_units, 0, 1e-12);
  EXPECT_NEAR(term.standard_error, 0.5, 1e-12);  // sqrt(2 / 2 + 0 / 2) / 2
}

TEST(SlotTerm, NeedsTwoPairsInEachOrder) {
  const std::vector<Pair> pairs = {{1, 1, Order::kBaseFirst, false},
                                   {1, 1, Order::kBaseFirst, false},
                                   {1, 1, Order::kArmFirst, false}};
  EXPECT_FALSE(slot_term(pairs, Better::kHigher).ok());
}

TEST(Noise, IsTheSampleDeviationOfMedians) {
  const std::vector<double> medians = {0.01, -0.01, 0.03, -0.03};
  const Noise noise = estimate_noise(medians).value();
  EXPECT_EQ(noise.rounds, 4);
  EXPECT_EQ(noise.missing_rounds(), 16);
  EXPECT_NEAR(noise.standard_deviation, std::sqrt(0.002 / 3), 1e-12);
  EXPECT_EQ(estimate_noise(std::vector<double>(25, 0.5)).value().missing_rounds(), 0);
}

TEST(Noise, Mean) {
  EXPECT_DOUBLE_EQ(mean(std::vector<double>{1, 2, 6}), 3);
}

TEST(Noise, EdgeCases) {
  EXPECT_EQ(estimate_noise({}).value().rounds, 0);
  EXPECT_EQ(estimate_noise({}).value().missing_rounds(), kMinimumNoiseRounds);
  EXPECT_EQ(estimate_noise(std::vector<double>{0.2}).value().standard_deviation, 0);
  EXPECT_FALSE(estimate_noise(std::vector<double>{0.2, kNan}).ok());
  EXPECT_FALSE(estimate_noise(std::vector<double>{kInfinity}).ok());
}

}  // namespace
}  // namespace reckon::measure
