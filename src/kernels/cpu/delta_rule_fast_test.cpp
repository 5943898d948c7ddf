// Rows of the table that take a gated delta rule in chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/recurrent_testing.h"
#include "kernels/cpu/variants_testing.h"

namespace reckon::kernels {
namespace {

using testing::DeltaRule;
using testing::expect_rows_close;
using testing::expect_stamped;
using testing::for_each_row;
using testing::Random;
using testing::Runner;
using testing::same_bits;

constexpr int64_t kPasses[] = {48, 77, 49, 90};
constexpr int64_t kLength = 264;

template <typename Check>
void for_each_fast_row(const DeltaRule& sequence, const Check& check) {
  std::vector<float> none;
  const OpCall call = call_of(sequence.args(none, none, 0, kPasses[0]), Phase::kPrefill);
  for_each_row(Op::kGatedDeltaRule, [&](const Variant& row) {
    if (row.numerics != NumericsClass::kFast) return;
    ASSERT_EQ(row.supports(call), "") << row.name;
    check(row);
  });
}

// All passes, with the states that must be there after each.
void expect_float64(const Variant& row, const DeltaRule& sequence, Runner& runner) {
  std::vector<float> expected;
  std::vector<std::vector<float>> states;
  sequence.expected(expected, states);
  std::vector<float> state = sequence.fresh_state();
  std::vector<float> out(expected.size(), std::nanf(""));
  int64_t at = 0;
  for (const int64_t rows : kPasses) {
    const GatedDeltaRuleArgs args = sequence.args(state, out, at, rows);
    runner.run(row, args);
    expect_stamped(runner, row, call_of(args, Phase::kPrefill));
    at += rows;
    for (int64_t p = at - std::min(rows, sequence.slots); p < at; ++p) {
      const int64_t slot = (p + 1) % sequence.slots * sequence.state_size;
      const std::vector<float> got(state.begin() + slot,
                                   state.begin() + slot + sequence.state_size);
      expect_rows_close(got, states[p], 1, row, "state after " + std::to_string(p));
    }
  }
  ASSERT_EQ(at, kLength);
  expect_rows_close(out, expected, kLength, row);
}

TEST(FastGatedDeltaRule, MatchesFloat64) {
  Random random(50);
  Runner runner(2);
  using Heads = DeltaRule::Heads;
  for (const Heads& heads :
       {Heads{1, 1, 32, 16}, Heads{2, 6, 128, 128}, Heads{1, 3, 64, 48}, Heads{2, 2, 96, 208},
        Heads{3, 3, 256, 32}, Heads{2, 6, 32, 48, KeyHeadOrder::kTiled}}) {
    for (const int64_t slots : {1, 2, 7, 40}) {
      const DeltaRule sequence(kLength, heads, slots, random);
      for_each_fast_row(sequence,
                        [&](const Variant& row) { expect_float64(row, sequence, runner); });
    }
  }
}

// States that are gone within a row, that stay for good, and both in turn.
TEST(FastGatedDeltaRule, TakesDecaysOfAnySize) {
  Random random(51);
  Runner runner(2);
  for (const float step : {-40.0F, 0.0F, 40.0F}) {
    DeltaRule sequence(kLength, {2, 4, 64, 64}, 3, random);
    std::ranges::fill(sequence.dt_bias, step);
    for (size_t i = 0; i < sequence.a.size(); i += 3) sequence.a[i] = -step;
    for_each_fast_row(sequence, [&](const Variant& row) { expect_float64(row, sequence, runner); });
  }
}

TEST(FastGatedDeltaRule, IsTheSameOnAnyNumberOfThreads) {
  Random random(52);
  const DeltaRule sequence(kLength, {3, 6, 64, 80}, 2, random);
  for_each_fast_row(sequence, [&](const Variant& row) {
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      Runner runner(threads);
      std::vector<float> state = sequence.fresh_state();
      std::vector<float> out(static_cast<size_t>(kLength * sequence.out_width), std::nanf(""));
      runner.run(row, sequence.args(state, out, 0, kLength));
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(out.data(), first.data(), static_cast<int64_t>(out.size())))
          << row.name << " on " << threads << " threads";
    }
  });
}

// As plain decode has no slots to go back to, and speculative decoding has.
TEST(FastGatedDeltaRule, IsTheSameWithAnyNumberOfSlots) {
  Random random(53);
  DeltaRule sequence(kLength, {2, 4, 64, 48}, 1, random);
  for_each_fast_row(sequence, [&](const Variant& row) {
    std::vector<float> first;
    for (const int64_t slots : {1, 2, 6, 17}) {
      sequence.slots = slots;
      Runner runner(2);
      std::vector<float> state = sequence.fresh_state();
      std::vector<float> out(static_cast<size_t>(kLength * sequence.out_width), std::nanf(""));
      runner.run(row, sequence.args(state, out, 0, kLength));
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(out.data(), first.data(), static_cast<int64_t>(out.size())))
          << row.name << " with " << slots << " slots";
    }
  });
}

}  // namespace
}  // namespace reckon::kernels
