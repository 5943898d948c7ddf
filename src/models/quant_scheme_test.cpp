#include "models/quant_scheme.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/test_files.h"

namespace reckon::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

QuantScheme rules(std::string_view text) {
  auto scheme = QuantScheme::parse_rules(text, "s.yaml");
  EXPECT_TRUE(scheme.ok()) << scheme.error().message;
  return scheme.ok() ? std::move(scheme).value() : QuantScheme();
}

std::string error_of(std::string_view text) {
  const auto scheme = QuantScheme::parse_rules(text, "s.yaml");
  return scheme.ok() ? "it was read" : scheme.error().message;
}

TEST(QuantScheme, NamedOnesAreOneTypeForAll) {
  EXPECT_FALSE(QuantScheme().packs());
  EXPECT_EQ(QuantScheme().id(), "none");
  const struct {
    const char* name;
    std::optional<DType> type;
  } kNamed[] = {{"none", std::nullopt},
                {"q4", DType::kP4},
                {"q8", DType::kP8},
                {"f16", DType::kF16},
                {"bf16", DType::kBF16}};
  for (const auto& [name, type] : kNamed) {
    const auto scheme = QuantScheme::parse(name);
    ASSERT_TRUE(scheme.ok()) << name;
    EXPECT_EQ(scheme->type_of("any"), type) << name;
    EXPECT_EQ(scheme->packs(), type.has_value()) << name;
    EXPECT_EQ(scheme->id(), name);
    EXPECT_FALSE(scheme->is_mixed());
  }
  EXPECT_THAT(QuantScheme::parse("q5").error().message,
              HasSubstr("unknown quantisation 'q5'; expected none, q4, q8"));
}

TEST(QuantScheme, TheFirstPatternThatFitsDecides) {
  const QuantScheme scheme =
      rules("- \"*.self_attn.?_proj.weight\": q8\n- lm_head.weight: none\n- \"*.weight\": q4\n");
  EXPECT_TRUE(scheme.is_mixed());
  EXPECT_TRUE(scheme.packs());
  EXPECT_EQ(scheme.type_of("model.layers.0.self_attn.q_proj.weight"), DType::kP8);
  EXPECT_EQ(scheme.type_of("model.layers.0.mlp.up_proj.weight"), DType::kP4);
  EXPECT_EQ(scheme.type_of("lm_head.weight"), std::nullopt);
  EXPECT_EQ(scheme.type_of("lm_head.bias"), std::nullopt);
  EXPECT_FALSE(rules("- a: none").packs());
}

TEST(QuantScheme, PatternsAreWholeNames) {
  const struct {
    const char* pattern;
    const char* name;
    bool fits;
  } kCases[] = {
      {"a", "a", true},         {"a", "ab", false},           {"a", "ba", false},
      {"*", "", true},          {"*", "any.thing", true},     {"?", "", false},
      {"a*b", "ab", true},      {"a*b", "a.x.b", true},       {"a*b", "a.x.bc", false},
      {"*a*b*", "xaxbx", true}, {"*ab*abc", "ababab", false}, {"*ab*abc", "abababc", true},
      {"a**", "a", true},       {"a?c", "abc", true},         {"a.c", "abc", false},
      {"[a]", "a", false}};
  for (const auto& [pattern, name, fits] : kCases) {
    const QuantScheme scheme = rules("- \"" + std::string(pattern) + "\": q4");
    EXPECT_EQ(scheme.type_of(name).has_value(), fits) << pattern << " on " << name;
  }
}

TEST(QuantScheme, ErrorsNameTheLine) {
  EXPECT_THAT(error_of(""), StartsWith("s.yaml:1: "));
  EXPECT_THAT(error_of("[]"), StartsWith("s.yaml:1: expected a list of patterns"));
  EXPECT_THAT(error_of("a: q4"), StartsWith("s.yaml:1: expected a list of patterns"));
  EXPECT_THAT(error_of("- a: q4\n- b: q5\n"),
              StartsWith("s.yaml:2: 'b' is 'q5': expected none or q4"));
  EXPECT_THAT(error_of("- a: q4\n- b: [q4]\n"), StartsWith("s.yaml:2: 'b' is ''"));
  EXPECT_THAT(error_of("- a: q4\n- b\n"),
              StartsWith("s.yaml:2: expected one pattern and its type"));
  EXPECT_THAT(error_of("- a: q4\n  b: q8\n"), StartsWith("s.yaml:1: expected one pattern"));
  EXPECT_THAT(error_of("- a: q4\n- \"\": q8\n"), StartsWith("s.yaml:2: a pattern is empty"));
  EXPECT_THAT(error_of("- a: q4\n- {"), StartsWith("s.yaml:2: "));
  EXPECT_THAT(QuantScheme::parse("no/such.yaml").error().message,
              HasSubstr("no/such.yaml: no such file"));
}

TEST(QuantScheme, ReadsAFile) {
  TestFolder folder;
  const std::string path = folder.write("s.yaml", "- \"*\": q8\n");
  const auto scheme = QuantScheme::parse(path);
  ASSERT_TRUE(scheme.ok()) << scheme.error().message;
  EXPECT_EQ(scheme->type_of("x"), DType::kP8);
}

TEST(QuantScheme, TheIdIsThatOfTheRules) {
  const std::string id = rules("- a: q4\n- b: q8\n").id();
  EXPECT_THAT(id, StartsWith("mixed-"));
  EXPECT_EQ(rules("# a comment\n- {a: q4}\n- {b: q8}").id(), id);
  EXPECT_NE(rules("- b: q8\n- a: q4\n").id(), id);
  EXPECT_NE(rules("- a: q4\n- b: q4\n").id(), id);
}

TEST(QuantScheme, SaysWhichRulesDecideNothing) {
  const QuantScheme scheme = rules("- a: q4\n- typo: q8\n- \"*\": q8\n- b: q4\n");
  const std::vector<std::string> names{"a", "b"};
  EXPECT_THAT(scheme.unused(names),
              ElementsAre("s.yaml:2: 'typo' decides for no matrix of this model",
                          "s.yaml:4: 'b' decides for no matrix of this model"));
}

}  // namespace
}  // namespace reckon::models
