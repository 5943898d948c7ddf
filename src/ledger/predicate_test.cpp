#include "ledger/predicate.h"

#include <gtest/gtest.h>

#include <string>

#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

TEST(Predicate, Parses) {
  EXPECT_EQ(parse_predicate("chunk >= 2048").value(),
            (Predicate{"chunk", Comparison::kGreaterEqual, 2048}));
  EXPECT_EQ(parse_predicate("sms>100").value(), (Predicate{"sms", Comparison::kGreater, 100}));
  EXPECT_EQ(parse_predicate(" cuda.version < 13.1 ").value(),
            (Predicate{"cuda.version", Comparison::kLess, 13.1}));
  EXPECT_EQ(parse_predicate("a = -1e3").value(), (Predicate{"a", Comparison::kEqual, -1000}));
  EXPECT_EQ(parse_predicate("a == 2").value().comparison, Comparison::kEqual);
  EXPECT_EQ(parse_predicate("a != 2").value().comparison, Comparison::kNotEqual);
  EXPECT_EQ(parse_predicate("a <= 2").value().comparison, Comparison::kLessEqual);
}

TEST(Predicate, RefusesEverythingElse) {
  for (const char* text :
       {"", "chunk", "chunk >=", ">= 2", "chunk >= big", "chunk ! 2", "2 > 1", "a b > 2", "a > nan",
        "a > inf", "a > 1e999", "a > 1 2", "a >> 2", "when the driver changes"}) {
    const auto predicate = parse_predicate(text);
    ASSERT_FALSE(predicate.ok()) << text;
    EXPECT_EQ(predicate.error().kind, ErrorKind::kUsage);
  }
  EXPECT_EQ(parse_predicate("a\n\xff").error().message,
            "'a \\xff' is not a condition: expected the form 'chunk >= 2048'");
}

TEST(Predicate, ReadsVersions) {
  EXPECT_EQ(parse_predicate("kernel_version >= 6.10").value(),
            (Predicate{"kernel_version", Comparison::kGreaterEqual, 6010000}));
  EXPECT_EQ(parse_predicate("driver_version < 580.126.09").value().number, 580126009);
  EXPECT_EQ(version_number("13"), 13000000);
  for (const char* text : {"", "new", "1.", ".1", "1..2", "1.2.3.4", "1000", "-1", "1e2"}) {
    EXPECT_FALSE(version_number(text)) << text;
    EXPECT_FALSE(parse_predicate(std::string("a_version > ") + text).ok()) << text;
  }
}

TEST(Predicate, HoldsByEveryComparison) {
  const Facts facts = {{"a", 2.0}};
  const auto holds_for = [&](const char* text) {
    return holds(parse_predicate(text).value(), facts);
  };
  EXPECT_TRUE(holds_for("a >= 2") && holds_for("a <= 2") && holds_for("a == 2"));
  EXPECT_TRUE(holds_for("a > 1") && holds_for("a < 3") && holds_for("a != 3"));
  EXPECT_FALSE(holds_for("a > 2") || holds_for("a < 2") || holds_for("a != 2"));
  EXPECT_FALSE(holds_for("b != 2")) << "an unknown fact holds nothing";
}

TEST(Facts, ComeFromTheScope) {
  Scope scope = test::expert_tile_scope();
  EXPECT_EQ(facts_of(scope).at("sms"), 132);
  EXPECT_EQ(facts_of(scope).at("chunk"), 2048);
  EXPECT_FALSE(facts_of(scope).contains("cores"));
  scope.device = {"GenuineIntel", "avx512", 16, 64};
  EXPECT_EQ(facts_of(scope).at("cores"), 16);
  EXPECT_FALSE(facts_of(scope).contains("sms"));
}

}  // namespace
}  // namespace reckon::ledger
