#include "engine/speculation_stats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace reckon::engine {
namespace {

TEST(SpeculationStats, CountsEachDepthGivenTheOnesBefore) {
  SpeculationStats stats("lookup", 3);
  stats.add(3, 3, 4, 40, 4);
  stats.add(3, 1, 2, 40, 4);
  stats.add(2, 0, 1, 30, 2);
  stats.add(0, 0, 1, 20, 1);
  EXPECT_EQ(stats.passes(), 4);
  EXPECT_EQ(stats.drafting_passes(), 3);
  EXPECT_EQ(stats.tokens(), 8);
  EXPECT_EQ(stats.tokens_per_pass(), 2);
  ASSERT_EQ(stats.depths().size(), 3U);
  EXPECT_EQ(stats.depths()[0].drafted, 3);
  EXPECT_EQ(stats.depths()[0].reached, 3);
  EXPECT_EQ(stats.depths()[0].accepted, 2);
  EXPECT_EQ(stats.depths()[1].reached, 2);
  EXPECT_EQ(stats.depths()[1].accepted, 1);
  EXPECT_EQ(stats.depths()[2].drafted, 2);
  EXPECT_EQ(stats.depths()[2].reached, 1);
  EXPECT_EQ(stats.depths()[2].acceptance(), 1.0);
  EXPECT_EQ(stats.mean_pass_ns(), (44 + 44 + 32 + 21) / 4.0);
}

// The generation ended at a token that a draft had right, before the draft behind it was judged.
TEST(SpeculationStats, WhatWasNotJudgedWasNotReached) {
  SpeculationStats stats("lookup", 3);
  stats.add(3, 1, 1, 10, 0);
  EXPECT_EQ(stats.depths()[0].accepted, 1);
  EXPECT_EQ(stats.depths()[1].reached, 0);
  EXPECT_EQ(stats.depths()[1].acceptance(), std::nullopt);
}

TEST(SpeculationStats, ACostIsAMedianOverAMedianWithDrafting) {
  SpeculationStats stats("lookup", 1);
  for (const int64_t ns : {190, 210, 5000}) stats.add(1, 1, 2, ns, 10);
  EXPECT_EQ(stats.cost(2), std::nullopt);
  for (const int64_t ns : {90, 100, 900}) stats.add_time(1, ns);
  EXPECT_EQ(stats.median_pass_ns(2), 210);
  EXPECT_EQ(stats.cost(2), 2.2);
  EXPECT_EQ(stats.cost(1), 1.0);
  EXPECT_EQ(stats.cost(3), std::nullopt);
  EXPECT_EQ(stats.passes(), 3);
  EXPECT_EQ(stats.passes_of(1), 3);
}

TEST(SpeculationStats, MergedCountsAndTimesAreThoseOfBoth) {
  SpeculationStats a("lookup", 2);
  a.add(1, 0, 1, 10, 1);
  SpeculationStats b("lookup", 2);
  b.add(2, 2, 3, 30, 1);
  a.merge(b);
  EXPECT_EQ(a.passes(), 2);
  EXPECT_EQ(a.tokens(), 4);
  EXPECT_EQ(a.depths()[0].drafted, 2);
  EXPECT_EQ(a.depths()[1].accepted, 1);
  EXPECT_EQ(a.passes_of(2), 1);
  EXPECT_EQ(a.passes_of(3), 1);
}

TEST(BreakEven, IsWhereTheExpectedTokensAreTheCost) {
  for (const int64_t depth : {1, 2, 5, 8}) {
    for (const double a : {0.1, 0.5, 0.93}) {
      const double cost = (1 - std::pow(a, depth + 1)) / (1 - a);
      ASSERT_TRUE(break_even_acceptance(depth, cost).has_value());
      EXPECT_NEAR(*break_even_acceptance(depth, cost), a, 1e-9);
    }
  }
  EXPECT_EQ(break_even_acceptance(3, 1.0), 0.0);
  EXPECT_EQ(break_even_acceptance(3, 0.9), 0.0);
  EXPECT_EQ(break_even_acceptance(3, 4.01), std::nullopt);
  EXPECT_NEAR(*break_even_acceptance(1, 1.25), 0.25, 1e-9);
}

}  // namespace
}  // namespace reckon::engine
