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

TEST(Text, TimestampsAreUtc) {
  EXPECT_THAT(utc_timestamp(), MatchesRegex("20..-..-..T..:..:..Z"));
}

}  // namespace
}  // namespace reckon
