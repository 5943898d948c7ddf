#include "base/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using ::testing::StartsWith;

std::string error_of(std::string_view text) {
  const auto tree = parse_yaml(text, "f.yaml");
  return tree.ok() ? "it was read" : tree.error().message;
}

TEST(YamlTree, KeepsTextAndLines) {
  const auto tree = parse_yaml("a: on\nb:\n  - x\n  - {c: 1}\n", "f.yaml");
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  EXPECT_EQ(tree->find("a")->scalar, "on");
  const YamlNode& list = *tree->find("b");
  ASSERT_EQ(list.items.size(), 2U);
  EXPECT_EQ(list.items[1].find("c")->scalar, "1");
  EXPECT_EQ(list.items[1].line, 4);
}

TEST(YamlTree, IsOneDocument) {
  EXPECT_EQ(error_of(""), "f.yaml:1: the file is empty");
  EXPECT_EQ(error_of("# a comment\n"), "f.yaml:1: the file is empty");
  EXPECT_EQ(error_of("--- a\n"), "it was read");
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"), "f.yaml:2: a second document: one was expected");
}

TEST(YamlTree, ErrorsAreOneLine) {
  EXPECT_EQ(yaml_error("f.yaml", 3, "unknown key 'a\n\nb'").message,
            "f.yaml:3: unknown key 'a  b'");
}

// Texts in which the library finds documents without end.
TEST(YamlTree, EndsOnTextsThatDoNot) {
  for (const char* text : {",", ",-x: q0}\n- *a\n", "- a\n,", "- ,\n"}) {
    EXPECT_THAT(error_of(text), StartsWith("f.yaml")) << text;
  }
}

}  // namespace
}  // namespace reckon
