#include "measure/holm.h"

#include <gtest/gtest.h>

#include <vector>

namespace reckon::measure {
namespace {

// By hand: sorted 0.005 × 5, 0.01 × 4, 0.03 × 3, then 0.04 × 2 raised to 0.09, then 0.5; as
// R's p.adjust(p, "holm").
TEST(Holm, StepsDown) {
  const std::vector<double> adjusted = holm(std::vector<double>{.01, .04, .03, .005, .5}).value();
  const std::vector<double> expected = {0.04, 0.09, 0.09, 0.025, 0.5};
  ASSERT_EQ(adjusted.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-15) << i;
}

TEST(Holm, StaysBelowOneAndRefusesNonsense) {
  EXPECT_EQ(holm(std::vector<double>{0.7, 0.6}).value(), (std::vector<double>{1, 1}));
  EXPECT_EQ(holm(std::vector<double>{0.004}).value(), (std::vector<double>{0.004}));
  EXPECT_TRUE(holm({}).value().empty());
  EXPECT_FALSE(holm(std::vector<double>{1.1}).ok());
  EXPECT_FALSE(holm(std::vector<double>{-0.1}).ok());
}

}  // namespace
}  // namespace reckon::measure
