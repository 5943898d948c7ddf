#include "engine/lookup_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace reckon::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<int32_t>;

std::vector<Draft> proposed(LookupDrafter& drafter, int64_t depth,
                            const ConfidenceGate& gate = {}) {
  const auto drafts = drafter.propose(depth, gate);
  EXPECT_TRUE(drafts.ok());
  return drafts.ok() ? *drafts : std::vector<Draft>();
}

Tokens tokens_of(const std::vector<Draft>& drafts) {
  Tokens tokens;
  for (const Draft& draft : drafts) tokens.push_back(draft.token);
  return tokens;
}

Tokens after(const Tokens& text, int64_t depth) {
  LookupDrafter drafter;
  EXPECT_TRUE(drafter.commit(text).ok());
  return tokens_of(proposed(drafter, depth));
}

TEST(LookupDrafter, CopiesWhatFollowedTheLastTime) {
  EXPECT_THAT(after({1, 2, 3, 4, 5, 6, 1, 2, 3}, 3), ElementsAre(4, 5, 6));
  EXPECT_THAT(after({7, 1, 8, 1, 9, 1}, 1), ElementsAre(9));  // the most recent of equals
}

TEST(LookupDrafter, PrefersTheLongerMatchToTheRecentOne) {
  EXPECT_THAT(after({1, 2, 3, 40, 9, 3, 50, 1, 2, 3}, 1), ElementsAre(40));
  EXPECT_THAT(after({2, 3, 40, 9, 3, 50, 2, 3}, 1), ElementsAre(40));
  // Three tokens are the longest that count: then the recent one is taken.
  EXPECT_THAT(after({5, 1, 2, 3, 40, 6, 1, 2, 3, 50, 5, 1, 2, 3}, 1), ElementsAre(50));
}

TEST(LookupDrafter, GoesOnBehindItsOwnDrafts) {
  EXPECT_THAT(after({1, 2, 1, 2}, 8), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
  EXPECT_THAT(after({4, 4}, 3), ElementsAre(4, 4, 4));
}

TEST(LookupDrafter, HasNothingToSayOfWhatIsNew) {
  EXPECT_THAT(after({1, 2, 3, 4}, 4), IsEmpty());
  EXPECT_THAT(after({1}, 4), IsEmpty());
}

TEST(LookupDrafter, ProposalsLeaveNoTrace) {
  LookupDrafter drafter;
  ASSERT_TRUE(drafter.commit(Tokens{1, 2, 3, 1}).ok());
  const Tokens first = tokens_of(proposed(drafter, 5));
  EXPECT_EQ(tokens_of(proposed(drafter, 5)), first);
  ASSERT_TRUE(drafter.commit(Tokens{9, 2}).ok());
  EXPECT_EQ(tokens_of(proposed(drafter, 4)), after({1, 2, 3, 1, 9, 2}, 4));
}

TEST(LookupDrafter, AProbabilityIsTheShareOfTheMatches) {
  LookupDrafter drafter;
  // After 1: 2 (twice) and 3 (once), the last of them 2.
  ASSERT_TRUE(drafter.commit(Tokens{1, 2, 1, 3, 1, 2, 7, 1}).ok());
  const auto drafts = proposed(drafter, 1);
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_EQ(drafts[0].token, 2);
  EXPECT_EQ(drafts[0].probability, 2.0 / 4);
  EXPECT_FALSE(drafts[0].margin.has_value());
}

TEST(LookupDrafter, TheGateEndsAProposal) {
  LookupDrafter drafter;
  ASSERT_TRUE(drafter.commit(Tokens{1, 2, 1, 3, 1, 2, 7, 1}).ok());
  EXPECT_THAT(proposed(drafter, 4, {.least_probability = 0.51}), IsEmpty());
  // 2 with 1/2 passes; behind [1, 2] comes 7 or 1, with 1/3.
  EXPECT_EQ(tokens_of(proposed(drafter, 4, {.least_probability = 0.5})), Tokens{2});
  // It knows no margins.
  EXPECT_EQ(proposed(drafter, 4, {.least_margin = 100}).size(), 4U);
}

// Against the definition, on texts with many repeats.
TEST(LookupDrafter, IsTheDefinitionsOnManyTexts) {
  uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    Tokens text;
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525U + 1013904223U;
      text.push_back(static_cast<int32_t>((state >> 16) % 4));
    }
    int32_t expected = -1;
    for (size_t length = 3; length >= 1 && expected < 0; --length) {
      const Tokens end(text.end() - static_cast<ptrdiff_t>(length), text.end());
      for (size_t at = text.size() - length; at-- > 0 && expected < 0;) {
        if (std::equal(end.begin(), end.end(), text.begin() + static_cast<ptrdiff_t>(at))) {
          expected = text[at + length];
        }
      }
    }
    ASSERT_EQ(after(text, 1), expected < 0 ? Tokens{} : Tokens{expected}) << round;
  }
}

}  // namespace
}  // namespace reckon::engine
