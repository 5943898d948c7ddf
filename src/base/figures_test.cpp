#include "base/figures.h"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(Figures, Shares) {
  EXPECT_EQ(share_text(0.0213), "2.1%");
  EXPECT_EQ(share_text(0.00042), "0.042%");
  EXPECT_EQ(share_text(0), "0.0%");
  EXPECT_EQ(signed_share_text(-0.039), "-3.9%");
  EXPECT_EQ(signed_share_text(0.5), "+50.0%");
}

TEST(Figures, ValuesHaveFourDigitsAndTheirUnit) {
  EXPECT_EQ(values_text({949.44, 1951.6, 0.01234567}, "ms"), "949.4 / 1952 / 0.01235 ms");
  EXPECT_EQ(arms_text({949.4, 951.9}, {914.6, 914.7}, "tok/s"),
            "949.4 / 951.9 -> 914.6 / 914.7 tok/s");
  EXPECT_EQ(arms_text({1048576}, {2048}, "B"), "1.0 MiB -> 2.0 KiB");
  EXPECT_EQ(arms_text({1}, {2}, ""), "1.000 -> 2.000");
  EXPECT_EQ(values_text({123456789012.3, 1e12, 1e308, 5e-324}, "op/s"),
            "123456789012 / 1.000e+12 / 1.000e+308 / 4.941e-324 op/s");
}

TEST(Figures, ANarrowPlaceLosesRoundsAndNotTheUnit) {
  const std::vector<double> base{213.7, 254.3, 229.2, 223.4};
  const std::vector<double> arm{104.1, 113.1, 109.6, 96.88};
  EXPECT_EQ(arms_text_within({949.4, 951.9}, {914.6, 914.7}, "tok/s", 36),
            "949.4 / 951.9 -> 914.6 / 914.7 tok/s");
  EXPECT_EQ(arms_text_within({949.4, 951.9}, {914.6, 914.7}, "tok/s", 35),
            "949.4 / … -> 914.6 / … tok/s");
  EXPECT_EQ(arms_text_within(base, arm, "ms", 41), "213.7 / 254.3 / … -> 104.1 / 113.1 / … ms");
  EXPECT_EQ(arms_text_within(base, arm, "ms", 40), "213.7 / … -> 104.1 / … ms");
  EXPECT_EQ(arms_text_within(base, arm, "ms", 3), "213.7 / … -> 104.1 / … ms");
  EXPECT_EQ(arms_text_within({1}, {2}, "furlongs a fortnight", 3),
            "1.000 -> 2.000 furlongs a fortnight");
}

}  // namespace
}  // namespace reckon
