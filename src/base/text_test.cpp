#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

TEST(Text, NearestSuggestsOnlyWhatIsNear) {
  const std::vector<std::string> keys = {"prefill.chunk", "prefill.tile", "decode.graph"};
  EXPECT_EQ(nearest("prefil.chunk", keys), "prefill.chunk");
  EXPECT_EQ(nearest("prefill.title", keys), "prefill.tile");
  EXPECT_EQ(nearest("decode.graph", keys), "decode.graph");
  EXPECT_EQ(nearest("temperature", keys), "");
  EXPECT_EQ(nearest("", {}), "");
  const std::vector<std::string> short_keys = {"id", "q4"};
  EXPECT_EQ(nearest("<<", short_keys), "");
  EXPECT_EQ(nearest("q8", short_keys), "q4");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_THAT(split("a,b,,c", ','), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
}

TEST(Text, JoinUndoesSplit) {
  const std::vector<std::string> parts = {"a", "", "c"};
  EXPECT_EQ(join(parts, ", "), "a, , c");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Text, CountsInSingularAndPlural) {
  EXPECT_EQ(counted(0, "round"), "0 rounds");
  EXPECT_EQ(counted(1, "round"), "1 round");
  EXPECT_EQ(counted(2, "A/A round"), "2 A/A rounds");
}

TEST(Text, OneLineShowsWhatIsNoText) {
  EXPECT_EQ(one_line("a\nb\tc\r"), "a b c ");
  EXPECT_EQ(one_line("\x7f\x01\xc2\x9b"), "\\x7f\\x01\\xc2\\x9b");
  EXPECT_EQ(one_line("x\xffy\xc3"), "x\\xffy\\xc3");
  EXPECT_EQ(one_line("€ü"), "€ü");
}

TEST(Text, ShortenCutsBetweenCharacters) {
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("abcd", 3), "abc…");
  EXPECT_EQ(shorten("a€€", 5), "a€…");
}

TEST(Text, QuotesForAShell) {
  EXPECT_EQ(shell_quoted("a/b-c.yaml"), "a/b-c.yaml");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("it's two words"), "'it'\\''s two words'");
}

TEST(Text, TimestampsAreUtc) {
  EXPECT_THAT(utc_timestamp(), MatchesRegex("20..-..-..T..:..:..Z"));
}

}  // namespace
}  // namespace reckon
