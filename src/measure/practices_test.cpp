#include "measure/practices.h"

#include <gtest/gtest.h>

#include <vector>

namespace reckon::measure {
namespace {

// scipy.stats.ttest_ind(a, b, equal_var=False).pvalue, SciPy 1.17.1.
TEST(Welch, MatchesScipy) {
  const std::vector<double> a = {100, 101.5, 99.2, 100.7, 98.9, 102.3};
  const std::vector<double> b = {103.1, 101.9, 104.4, 102.7, 103.9};
  EXPECT_NEAR(welch_p_value(a, b).value(), 0.0033105309967615655, 1e-14);
  EXPECT_NEAR(welch_p_value(b, a).value(), 0.0033105309967615655, 1e-14);
}

TEST(Welch, WithoutScatterAndWithoutValues) {
  const std::vector<double> one = {1, 1};
  const std::vector<double> two = {2, 2};
  EXPECT_EQ(welch_p_value(one, one).value(), 1);
  EXPECT_EQ(welch_p_value(one, two).value(), 0);
  EXPECT_FALSE(welch_p_value(one, std::vector<double>{1}).ok());
}

}  // namespace
}  // namespace reckon::measure
