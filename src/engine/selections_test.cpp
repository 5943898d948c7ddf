#include "engine/selections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

// Two rows of 4 experts, 2 of them selected.
struct Rows {
  std::vector<float> logits = {0, 1, 2, 3, 3, 2, 1, 0};
  std::vector<float> words = std::vector<float>(8);

  Rows(std::vector<int32_t> first, std::vector<int32_t> second) {
    std::memcpy(words.data(), first.data(), 2 * sizeof(int32_t));
    std::memcpy(words.data() + 4, second.data(), 2 * sizeof(int32_t));
  }
  models::Routed routed(int64_t layer) {
    return {layer, {logits.data(), 2, 4}, {words.data(), 2, 4}, kernels::RouteWeights::kOfSelected};
  }
  [[nodiscard]] std::vector<int32_t> ids(int64_t row) const {
    const int32_t* first = kernels::selected_experts(words.data(), row, 2);
    return {first, first + 2};
  }
};

TEST(Selections, ForceWhatWasRecordedWithTheWeightsAtHand) {
  Rows recorded({0, 1}, {2, 3});
  Selections selections;
  selections.record(5, recorded.routed(1));
  Rows rows({2, 3}, {0, 1});
  selections.force(5, rows.routed(1));
  EXPECT_THAT(rows.ids(0), ElementsAre(0, 1));
  EXPECT_THAT(rows.ids(1), ElementsAre(2, 3));
  const float share = 1 / (1 + std::exp(1.0F));  // of logits 0 and 1
  EXPECT_THAT(std::vector<float>(rows.words.begin() + 2, rows.words.begin() + 4),
              ElementsAre(FloatNear(share, 1e-6F), FloatNear(1 - share, 1e-6F)));

  // Position 6 is known, position 7 and other layers are not.
  Rows shifted({0, 1}, {0, 1});
  selections.force(6, shifted.routed(1));
  EXPECT_THAT(shifted.ids(0), ElementsAre(2, 3));
  EXPECT_THAT(shifted.ids(1), ElementsAre(0, 1));
  Rows other({1, 2}, {1, 2});
  selections.force(5, other.routed(0));
  EXPECT_THAT(other.ids(0), ElementsAre(1, 2));
}

TEST(Selections, CountExpertsThatWereNotRecorded) {
  Rows recorded({0, 1}, {2, 3});
  Selections selections;
  selections.record(0, recorded.routed(0));
  Rows rows({0, 2}, {0, 1});
  SelectionFlips flips;
  selections.count(0, rows.routed(0), flips);
  selections.count(100, rows.routed(0), flips);  // nothing is recorded of these
  EXPECT_EQ(flips.selections, 4);
  EXPECT_EQ(flips.flips, 3);
}

// A session goes by what it is given: another text's experts change its results, its own do not.
TEST(Selections, ASessionGoesByThem) {
  const auto model = open_model(golden_path("oracle/qwen3_next-h32"));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5};
  const std::vector<int32_t> others = {2, 7, 1, 8, 2, 8, 1, 8, 2};
  Selections own, other;
  const auto recorder = [](Selections& selections) {
    return [&](int64_t first_position, const models::Routed& routed) {
      selections.record(first_position, routed);
    };
  };
  const auto forcer = [](const Selections& selections) {
    return [&](int64_t first_position, const models::Routed& routed) {
      selections.force(first_position, routed);
    };
  };
  const Assignments exact = {"prefill.numerics=exact"};
  const auto expected = prefill_rows(*model, exact, tokens, recorder(own));
  prefill_rows(*model, exact, others, recorder(other));
  EXPECT_TRUE(same_bits(prefill_rows(*model, exact, tokens, forcer(own)), expected));
  EXPECT_TRUE(same_bits(
      prefill_rows(*model, {"prefill.numerics=exact", "prefill.chunk=4"}, tokens, forcer(own)),
      expected));
  EXPECT_FALSE(same_bits(prefill_rows(*model, exact, tokens, forcer(other)), expected));
  int64_t flips = 0;
  prefill_rows(*model, exact, tokens, [&](int64_t first_position, const models::Routed& routed) {
    SelectionFlips counted;
    other.count(first_position, routed, counted);
    flips += counted.flips;
  });
  EXPECT_GT(flips, 0);
}

}  // namespace
}  // namespace reckon::engine
