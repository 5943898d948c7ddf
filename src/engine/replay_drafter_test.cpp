#include "engine/replay_drafter.h"

#include <gtest/gtest.h>

namespace reckon::engine {
namespace {

Recording recording_of(int64_t length) {
  Recording recording;
  for (int64_t i = 0; i < length; ++i) {
    recording.tokens.push_back(static_cast<int32_t>(i % 10));
    recording.margins.push_back(static_cast<float>(i));
  }
  return recording;
}

std::vector<Draft> all_drafts(double probability, uint64_t seed, const Recording& recording) {
  ReplayDrafter drafter(probability, recording, 10, seed);
  EXPECT_TRUE(drafter.commit(std::vector<int32_t>{7, 7, 7}).ok());  // the prompt
  const auto drafts = drafter.propose(1 << 20, {});
  EXPECT_TRUE(drafts.ok());
  return *drafts;
}

int64_t right(const std::vector<Draft>& drafts, const Recording& recording) {
  int64_t count = 0;
  for (size_t i = 0; i < drafts.size(); ++i) count += drafts[i].token == recording.tokens[i];
  return count;
}

TEST(ReplayDrafter, IsRightWithItsProbability) {
  const Recording recording = recording_of(10000);
  EXPECT_EQ(right(all_drafts(1, 0, recording), recording), 10000);
  EXPECT_EQ(right(all_drafts(0, 0, recording), recording), 0);
  const auto drafts = all_drafts(0.9, 0, recording);
  EXPECT_EQ(drafts.size(), 10000U);
  EXPECT_NEAR(static_cast<double>(right(drafts, recording)), 9000, 5 * 30);  // 5 sd
  for (const Draft& draft : drafts) {
    ASSERT_GE(draft.token, 0);
    ASSERT_LT(draft.token, 10);
  }
}

TEST(ReplayDrafter, ASeedFixesWhatIsWrong) {
  const Recording recording = recording_of(200);
  const auto tokens = [&](uint64_t seed) {
    std::vector<int32_t> list;
    for (const Draft& draft : all_drafts(0.5, seed, recording)) list.push_back(draft.token);
    return list;
  };
  EXPECT_EQ(tokens(3), tokens(3));
  EXPECT_NE(tokens(3), tokens(4));
}

TEST(ReplayDrafter, FollowsWhatIsCommittedToItsEnd) {
  ReplayDrafter drafter(1, recording_of(6), 10, 0);
  EXPECT_EQ(drafter.name(), "replay:1");
  EXPECT_TRUE(is_replay(drafter.name()));
  EXPECT_FALSE(is_replay("lookup"));
  ASSERT_TRUE(drafter.commit(std::vector<int32_t>{5, 5}).ok());
  ASSERT_TRUE(drafter.commit(std::vector<int32_t>{0}).ok());
  ASSERT_TRUE(drafter.commit(std::vector<int32_t>{1, 2}).ok());
  const auto drafts = drafter.propose(2, {});
  ASSERT_EQ(drafts->size(), 2U);
  EXPECT_EQ((*drafts)[0].token, 3);
  EXPECT_EQ((*drafts)[1].token, 4);
  ASSERT_TRUE(drafter.commit(std::vector<int32_t>{3, 4, 5}).ok());
  EXPECT_TRUE(drafter.propose(2, {})->empty());
  ASSERT_TRUE(drafter.commit(std::vector<int32_t>{8, 8, 8}).ok());  // beyond what was recorded
  EXPECT_TRUE(drafter.propose(2, {})->empty());
}

TEST(ReplayDrafter, GatesByItsProbabilityAndTheRecordedMargin) {
  Recording recording = recording_of(6);
  recording.margins = {5, 4, 1, 5, 5, 5};
  ReplayDrafter drafter(0.75, recording, 10, 0);
  ASSERT_TRUE(drafter.commit(std::vector<int32_t>{5}).ok());
  EXPECT_EQ(drafter.propose(5, {.least_margin = 4})->size(), 2U);
  EXPECT_EQ(drafter.propose(5, {.least_probability = 0.75})->size(), 5U);
  EXPECT_EQ(drafter.propose(5, {.least_probability = 0.76})->size(), 0U);
}

}  // namespace
}  // namespace reckon::engine
