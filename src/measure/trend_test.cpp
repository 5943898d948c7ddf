#include "measure/trend.h"

#include <gtest/gtest.h>

#include <vector>

namespace reckon::measure {
namespace {

using Rounds = std::vector<std::vector<double>>;

// scipy.stats.kendalltau(range(n), values, method="exact").pvalue, SciPy 1.17.1.
TEST(Trend, OneRoundMatchesScipy) {
  struct Known {
    std::vector<double> values;
    int64_t score;
    double p;
  };
  const Known known[] = {
      {{100, 101, 103, 102, 105, 104}, 11, 0.05555555555555555},
      {{1, 2, 3, 4, 5, 6}, 15, 0.002777777777777778},
      {{6, 5, 4, 3, 2, 1}, -15, 0.002777777777777778},
      {{3, 1, 4, 1.5, 9, 2.6, 5, 8}, 12, 0.17886904761904762},
  };
  for (const Known& one : known) {
    const TrendTest test = trend_within_rounds(Rounds{one.values}).value();
    EXPECT_EQ(test.score, one.score);
    EXPECT_NEAR(test.p_value, one.p, 1e-13);
    EXPECT_TRUE(test.exact);
  }
}

// Counted over all 5! × 4! orders.
TEST(Trend, RoundsAddUp) {
  const TrendTest test = trend_within_rounds(Rounds{{1, 2, 3, 5, 4}, {10, 12, 11, 13}}).value();
  EXPECT_EQ(test.score, 12);
  EXPECT_NEAR(test.p_value, 0.02361111111111111, 1e-13);
}

TEST(Trend, ALevelThatDiffersBetweenRoundsIsNone) {
  const TrendTest test =
      trend_within_rounds(Rounds{{10, 11, 10.5, 10.2}, {20, 21, 20.5, 20.2}}).value();
  EXPECT_EQ(test.score, 0);
  EXPECT_EQ(test.p_value, 1);
}

// Variance (10·9·25 - 2·1·9 - 3·2·11) / 18 = 120.33; 2 × scipy.stats.norm.sf((39 - 1) / its root).
TEST(Trend, TiesAreNormalWithTheirVariance) {
  const TrendTest test = trend_within_rounds(Rounds{{1, 2, 2, 3, 5, 5, 5, 7, 6, 9}}).value();
  EXPECT_EQ(test.score, 39);
  EXPECT_FALSE(test.exact);
  EXPECT_NEAR(test.p_value / 0.0005320055051392492, 1, 1e-9);
  EXPECT_EQ(trend_within_rounds(Rounds{{3, 3, 3}}).value().p_value, 1);
}

// scipy.stats.theilslopes(log(values)).slope.
TEST(Trend, SlopeIsTheMedianOfAllSlopes) {
  const TrendTest test = trend_within_rounds(Rounds{{100, 101, 103, 102, 105, 104}}).value();
  EXPECT_NEAR(test.slope_log, 0.009615680963943607, 1e-14);
}

TEST(Trend, TooLittleSaysNothingAndNonsenseIsRefused) {
  EXPECT_EQ(trend_within_rounds({}).value().p_value, 1);
  EXPECT_EQ(trend_within_rounds(Rounds{{}, {5}, {6}}).value().p_value, 1);
  EXPECT_FALSE(trend_within_rounds(Rounds{{1, 0}}).ok());
}

}  // namespace
}  // namespace reckon::measure
