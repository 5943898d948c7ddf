#include "engine/logit_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace reckon::engine {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> kept(std::span<const float> logits, const FilterOptions& options) {
  std::vector<int32_t> tokens;
  for (const Candidate& candidate : likely_candidates(logits, options)) {
    EXPECT_EQ(candidate.logit, logits[static_cast<size_t>(candidate.token)]);
    tokens.push_back(candidate.token);
  }
  return tokens;
}

// Shares 0.5, 0.25, 0.125 and 0.125 of the total, in another order.
const std::array kShares{std::log(0.125F), std::log(0.5F), std::log(0.125F), std::log(0.25F)};

TEST(LogitFilter, TopKTakesTheLowestOfEquals) {
  EXPECT_THAT(kept(kShares, {.top_k = 1}), ElementsAre(1));
  EXPECT_THAT(kept(kShares, {.top_k = 3}), ElementsAre(0, 1, 3));
  EXPECT_THAT(kept(kShares, {.top_k = 9}), ElementsAre(0, 1, 2, 3));
}

TEST(LogitFilter, TopPTakesTheShortestRunThatReachesIt) {
  EXPECT_THAT(kept(kShares, {.top_p = 0.01}), ElementsAre(1));
  EXPECT_THAT(kept(kShares, {.top_p = 0.49}), ElementsAre(1));
  EXPECT_THAT(kept(kShares, {.top_p = 0.7}), ElementsAre(1, 3));
  EXPECT_THAT(kept(kShares, {.top_p = 0.8}), ElementsAre(0, 1, 3));
  EXPECT_THAT(kept(kShares, {.top_p = 0.9}), ElementsAre(0, 1, 2, 3));
}

TEST(LogitFilter, MinPIsRelativeToTheHighest) {
  EXPECT_THAT(kept(kShares, {.min_p = 0.2}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept(kShares, {.min_p = 0.3}), ElementsAre(1, 3));
  EXPECT_THAT(kept(kShares, {.min_p = 1}), ElementsAre(1));
}

TEST(LogitFilter, EachFilterSeesWhatTheOneBeforeLeft) {
  // Of the two that top-k leaves, the first alone has two thirds.
  EXPECT_THAT(kept(kShares, {.top_k = 2, .top_p = 0.6}), ElementsAre(1));
  EXPECT_THAT(kept(kShares, {.top_p = 0.6}), ElementsAre(1, 3));
}

TEST(LogitFilter, AlwaysLeavesTheHighest) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 4);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(50);
    for (float& logit : logits) logit = std::round(normal(random));
    const auto highest = std::ranges::max_element(logits) - logits.begin();
    const std::vector<int32_t> tokens = kept(logits, {.top_k = 7, .top_p = 1e-9, .min_p = 1});
    EXPECT_THAT(tokens, ElementsAre(highest));
    const std::vector<int32_t> seven = kept(logits, {.top_k = 7});
    EXPECT_EQ(seven.size(), 7U);
    EXPECT_TRUE(std::ranges::is_sorted(seven));
  }
}

TEST(Penalty, ActsOncePerTokenAndAlwaysDownwards) {
  std::array logits{2.0F, -2.0F, 0.0F, 3.0F};
  penalise(logits, std::array{0, 1, 1, 0, 2}, 2.0F);
  EXPECT_THAT(logits, ElementsAre(1.0F, -4.0F, 0.0F, 3.0F));
}

}  // namespace
}  // namespace reckon::engine
