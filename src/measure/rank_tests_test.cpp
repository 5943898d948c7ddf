#include "measure/rank_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace reckon::measure {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// scipy.stats.wilcoxon(d, method="exact").pvalue, SciPy 1.17.1; its statistic is the smaller of the
// two rank sums.
TEST(Wilcoxon, MatchesScipyWithoutTies) {
  struct Known {
    std::vector<double> differences;
    double above;
    double p;
  };
  const Known known[] = {
      {{1.1, 2.2, -0.3, 4.5, 0.7, -1.9}, 16, 0.3125},
      {{0.5, 1.5, 2.5, 3.5, 4.5, 5.5}, 21, 0.03125},
      {{-1, 2, -3, 4, -5, 6, -7, 8, 9, 10, 11, -12}, 50, 0.423828125},
  };
  for (const Known& one : known) {
    const RankTest test = wilcoxon_signed_rank(one.differences).value();
    EXPECT_EQ(test.statistic, one.above);
    EXPECT_NEAR(test.p_value, one.p, 1e-14);
    EXPECT_TRUE(test.exact);
    EXPECT_EQ(test.used, static_cast<int64_t>(one.differences.size()));
  }
}

// scipy.stats.wilcoxon(values other than zero, method=PermutationMethod(n_resamples=inf)).pvalue.
TEST(Wilcoxon, TiesShareRanksAndZerosAreLeftOut) {
  const RankTest zeros = wilcoxon_signed_rank(std::vector<double>{1, 1, 2, -2, 3, 3, 0, 0}).value();
  EXPECT_EQ(zeros.statistic, 17.5);
  EXPECT_EQ(zeros.used, 6);
  EXPECT_EQ(zeros.zeros, 2);
  EXPECT_NEAR(zeros.p_value, 0.1875, 1e-14);
  const std::vector<double> ties = {0.5, 0.5, 0.5, -0.5, 1, 1, -1};
  EXPECT_EQ(wilcoxon_signed_rank(ties).value().statistic, 19.5);
  EXPECT_NEAR(wilcoxon_signed_rank(ties).value().p_value, 0.46875, 1e-14);
  const std::vector<double> equal = {2, 2, 2, 2, 2, 2, 2, -2};
  EXPECT_NEAR(wilcoxon_signed_rank(equal).value().p_value, 0.0703125, 1e-14);
}

// scipy.stats.wilcoxon(d, method="asymptotic", correction=True, zero_method="wilcox"), 249 values.
TEST(Wilcoxon, IsNormalForManyValues) {
  std::vector<double> differences;
  for (int i = 0; i < 250; ++i) differences.push_back(((i * 37) % 251 - 100) / 10.0);
  const RankTest test = wilcoxon_signed_rank(differences).value();
  EXPECT_FALSE(test.exact);
  EXPECT_EQ(test.zeros, 1);
  EXPECT_NEAR(test.p_value / 1.2658895157948024e-06, 1, 1e-9);
}

TEST(Wilcoxon, ExactAndNormalMeetWhereTheyChange) {
  std::vector<double> differences;
  for (int i = 1; i <= 200; ++i) differences.push_back(i % 3 == 0 ? -i : i);
  const RankTest exact = wilcoxon_signed_rank(differences).value();
  differences.push_back(201);
  const RankTest normal = wilcoxon_signed_rank(differences).value();
  EXPECT_TRUE(exact.exact);
  EXPECT_FALSE(normal.exact);
  EXPECT_NEAR(std::log10(exact.p_value), std::log10(normal.p_value), 0.3);
}

TEST(Wilcoxon, NothingToRankSaysNothing) {
  EXPECT_EQ(wilcoxon_signed_rank({}).value().p_value, 1);
  EXPECT_EQ(wilcoxon_signed_rank(std::vector<double>{0, 0, 0}).value().p_value, 1);
  EXPECT_EQ(wilcoxon_signed_rank(std::vector<double>{0, 0, 0}).value().zeros, 3);
  EXPECT_FALSE(wilcoxon_signed_rank(std::vector<double>{1, kNan}).ok());
}

// scipy.stats.binomtest(k, n).pvalue.
TEST(SignTest, MatchesScipy) {
  struct Known {
    int above;
    int count;
    double p;
  };
  constexpr Known kKnown[] = {
      {5, 6, 0.21875}, {6, 6, 0.03125}, {0, 6, 0.03125},        {3, 6, 1.0},
      {6, 11, 1.0},    {5, 11, 1.0},    {1, 12, 0.00634765625}, {40, 60, 0.01348929373119186}};
  for (const Known& known : kKnown) {
    std::vector<double> differences{0.0};
    for (int i = 0; i < known.count; ++i) differences.push_back(i < known.above ? 1 + i : -1 - i);
    const RankTest test = sign_test(differences).value();
    EXPECT_EQ(test.statistic, known.above);
    EXPECT_EQ(test.used, known.count);
    EXPECT_EQ(test.zeros, 1);
    EXPECT_NEAR(test.p_value, known.p, 1e-12) << known.above << " of " << known.count;
  }
  EXPECT_EQ(sign_test({}).value().p_value, 1);
  EXPECT_FALSE(sign_test(std::vector<double>{kNan}).ok());
}

}  // namespace
}  // namespace reckon::measure
