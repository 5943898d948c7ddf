#include "measure/normal.h"

#include <gtest/gtest.h>

namespace reckon::measure {
namespace {

// scipy.stats.norm.ppf and .sf, SciPy 1.17.1.
TEST(Normal, MatchesScipy) {
  struct Known {
    double p;
    double z;
  };
  constexpr Known kQuantiles[] = {{0.975, 1.959963984540054}, {0.9, 1.2815515655446004},
                                  {0.6, 0.2533471031357997},  {0.001, -3.090232306167813},
                                  {1e-6, -4.753424308822899}, {0.3, -0.5244005127080409}};
  for (const Known& known : kQuantiles) {
    EXPECT_NEAR(normal_quantile(known.p) / known.z, 1, 1e-9) << known.p;
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(normal_upper_tail(1), 0.15865525393145707, 1e-15);
  EXPECT_NEAR(normal_upper_tail(3), 0.0013498980316300933, 1e-16);
  EXPECT_NEAR(normal_upper_tail(-2), 0.9772498680518208, 1e-15);
}

}  // namespace
}  // namespace reckon::measure
