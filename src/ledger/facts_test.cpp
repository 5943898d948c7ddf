#include "ledger/facts.h"

#include <gtest/gtest.h>

namespace reckon::ledger {
namespace {

TEST(Facts, ComeFromTheEnvironmentsTexts) {
  Environment environment;
  environment.compiler = "GNU 12.2.0";
  environment.kernel = "Linux 6.18.44-fc-v857";
  environment.driver =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.126.09  Release Build";
  environment.readings = {
      {"cuda_version", "13.0"}, {"cpu_max_khz", "3500000"}, {"load_average", "0.5 0.4 0.3 1/99 7"}};
  environment.facts = {{"fans", 2}};
  EXPECT_EQ(facts_of(environment), (Facts{{"gcc_version", 12002000},
                                          {"kernel_version", 6018044},
                                          {"driver_version", 580126009},
                                          {"cuda_version", 13000000},
                                          {"cpu_max_mhz", 3500},
                                          {"fans", 2}}));
  environment.compiler = "Clang 19.1.7";
  EXPECT_EQ(facts_of(environment).at("clang_version"), 19001007);
  EXPECT_FALSE(facts_of(environment).contains("gcc_version"));
}

TEST(Facts, AreUnknownWhereTheTextsSayNothing) {
  Environment environment;
  EXPECT_TRUE(facts_of(environment).empty());
  environment.compiler = "Intel 2024.1";
  environment.kernel = "Linux";
  environment.driver = "version .5 of 7";
  environment.readings = {{"cpu_max_khz", "fast"}, {"cuda_version", "13.0.1.2"}};
  EXPECT_TRUE(facts_of(environment).empty());
}

TEST(Facts, AreComparedAsVersions) {
  Environment environment;
  environment.kernel = "Linux 6.10.3-generic";
  const auto holds_for = [&](const char* text) {
    return holds(parse_predicate(text).value(), facts_of(environment));
  };
  EXPECT_TRUE(holds_for("kernel_version > 6.9"));
  EXPECT_TRUE(holds_for("kernel_version >= 6.10"));
  EXPECT_TRUE(holds_for("kernel_version == 6.10.3"));
  EXPECT_TRUE(holds_for("kernel_version < 7"));
  EXPECT_FALSE(holds_for("kernel_version == 6.10"));
  EXPECT_FALSE(holds_for("kernel_version > 6.10.12"));
}

}  // namespace
}  // namespace reckon::ledger
