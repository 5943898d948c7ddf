#include "engine/draft_depth.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace reckon::engine {
namespace {

// A device and a text: what a pass with some drafts costs, and how likely each is right.
struct World {
  std::function<int64_t(int64_t drafts)> pass_ns;
  double acceptance = 0;
};

// Runs passes and gives how often each depth was asked for.
std::vector<int64_t> depths_asked(DraftDepth& depth, const World& world, int passes,
                                  uint64_t seed = 1) {
  std::vector<int64_t> asked(kDeepestDraft + 1);
  std::mt19937_64 random(seed);
  for (int i = 0; i < passes; ++i) {
    const int64_t drafts = depth.next();
    ++asked[static_cast<size_t>(drafts)];
    int64_t accepted = 0;
    while (accepted < drafts && static_cast<double>(random() >> 11) * 0x1p-53 < world.acceptance) {
      ++accepted;
    }
    depth.saw(drafts, accepted, world.pass_ns(drafts));
  }
  return asked;
}

constexpr int64_t kPlain = 1000000;

TEST(DraftDepth, AFixedOneStays) {
  DraftDepth depth(3, false);
  EXPECT_EQ(depths_asked(depth, {[](int64_t d) { return kPlain * (d + 1); }, 0}, 50)[3], 50);
}

TEST(DraftDepth, TurnsDraftingOffWhereItLoses) {
  DraftDepth depth(8, true);
  // Rows cost as much as passes: nothing can be won.
  const World world{[](int64_t d) { return kPlain * (d + 1); }, 0.8};
  const auto asked = depths_asked(depth, world, 1000);
  EXPECT_GT(asked[0], 900);
  EXPECT_EQ(asked[3] + asked[5] + asked[6] + asked[7], 0);
}

TEST(DraftDepth, DraftsDeepWhereRowsAreFreeAndRight) {
  DraftDepth depth(8, true);
  const World world{[](int64_t d) { return kPlain + d * kPlain / 100; }, 0.97};
  EXPECT_GT(depths_asked(depth, world, 500)[8], 400);
}

TEST(DraftDepth, DraftsLittleWhereDraftsAreOftenWrong) {
  DraftDepth depth(8, true);
  // One draft gains 1.5 / 1.2; two 1.75 / 1.4, three 1.875 / 1.6, eight 2 / 2.6.
  const World world{[](int64_t d) { return kPlain + d * kPlain / 5; }, 0.5};
  const auto asked = depths_asked(depth, world, 2000);
  EXPECT_GT(asked[1] + asked[2] + asked[3], 1800);
}

TEST(DraftDepth, ComesBackWhenTheTextChanges) {
  DraftDepth depth(4, true);
  const auto pass_ns = [](int64_t d) { return kPlain + d * kPlain / 10; };
  EXPECT_GT(depths_asked(depth, {pass_ns, 0.0}, 300)[0], 230);
  EXPECT_GT(depths_asked(depth, {pass_ns, 1.0}, 2000)[4], 500);
}

TEST(DraftDepth, LearnsFromWhatADrafterHas) {
  DraftDepth depth(8, true);
  for (int i = 0; i < 200; ++i) depth.saw(0, 0, kPlain);  // it never had any
  EXPECT_GT(depth.next(), 0);
}

TEST(DraftDepth, NeverAsksForMoreThanItMay) {
  DraftDepth depth(2, true);
  const auto asked = depths_asked(depth, {[](int64_t) { return kPlain; }, 1.0}, 300);
  EXPECT_EQ(asked[0] + asked[1] + asked[2], 300);
  EXPECT_GT(asked[2], 250);
}

}  // namespace
}  // namespace reckon::engine
