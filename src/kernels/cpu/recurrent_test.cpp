// Every row of the tables for the ops of recurrent layers: against float64 over a whole sequence,
// in passes of any size, and back to an earlier position.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/cpu/recurrent_testing.h"
#include "kernels/cpu/variants_testing.h"

namespace reckon::kernels {
namespace {

using testing::Convolution;
using testing::DeltaRule;
using testing::expect_rows_close;
using testing::expect_stamped;
using testing::for_each_row;
using testing::Random;
using testing::Runner;
using testing::same_bits;
using testing::silu;

// Runs positions [first, first + rows) of a sequence in one pass.
template <typename Sequence>
void run_pass(Runner& runner, const Variant& row, const Sequence& sequence,
              std::vector<float>& state, std::vector<float>& out, int64_t first, int64_t rows) {
  runner.run(row, sequence.args(state, out, first, rows));
}

constexpr int64_t kPasses[] = {5, 1, 1, 17, 2, 3, 1, 9};
constexpr int64_t kLength = 39;

bool runs(const Variant& row, const OpCall& call) {
  return row.supports == nullptr || row.supports(call).empty();
}

TEST(EveryVariant, CausalConvMatchesFloat64) {
  Random random(40);
  Runner runner(2);
  struct Shape {
    int64_t channels, width, ring;
  };
  for (const Shape& s : {Shape{1, 1, 1}, Shape{5, 2, 1}, Shape{64, 4, 3}, Shape{67, 4, 3},
                         Shape{200, 4, 20}, Shape{33, 3, 100}, Shape{31, 5, 7}}) {
    const Convolution sequence(kLength, s.channels, s.width, s.ring, random);
    const std::vector<float> expected = sequence.expected();
    for_each_row(Op::kCausalConv, [&](const Variant& row) {
      std::vector<float> state = sequence.fresh_state();
      std::vector<float> out(expected.size(), std::nanf(""));
      int64_t at = 0;
      for (const int64_t rows : kPasses) {
        const CausalConvArgs args = sequence.args(state, out, at, rows);
        const OpCall call = call_of(args, Phase::kPrefill);
        if (!runs(row, call)) return;
        runner.run(row, args);
        expect_stamped(runner, row, call);
        at += rows;
      }
      ASSERT_EQ(at, kLength);
      expect_rows_close(out, expected, kLength, row, std::to_string(s.channels));
    });
  }
}

TEST(EveryVariant, GatedDeltaRuleMatchesFloat64) {
  Random random(41);
  Runner runner(2);
  using Heads = DeltaRule::Heads;
  for (const Heads& heads :
       {Heads{1, 1, 1, 1}, Heads{2, 4, 8, 16}, Heads{1, 3, 20, 24}, Heads{2, 2, 33, 40},
        Heads{1, 2, 128, 128}, Heads{3, 3, 7, 5}, Heads{1, 1, 64, 208},
        Heads{2, 6, 16, 48, KeyHeadOrder::kTiled}, Heads{3, 6, 9, 5, KeyHeadOrder::kTiled}}) {
    for (const int64_t slots : {1, 2, 7}) {
      const DeltaRule sequence(kLength, heads, slots, random);
      std::vector<float> expected;
      std::vector<std::vector<float>> states;
      sequence.expected(expected, states);
      for_each_row(Op::kGatedDeltaRule, [&](const Variant& row) {
        std::vector<float> state = sequence.fresh_state();
        std::vector<float> out(expected.size(), std::nanf(""));
        int64_t at = 0;
        for (const int64_t rows : kPasses) {
          const GatedDeltaRuleArgs args = sequence.args(state, out, at, rows);
          const OpCall call = call_of(args, Phase::kPrefill);
          if (!runs(row, call)) return;
          runner.run(row, args);
          expect_stamped(runner, row, call);
          at += rows;
          for (int64_t p = at - std::min(rows, slots); p < at; ++p) {
            const int64_t slot = (p + 1) % slots * sequence.state_size;
            const std::vector<float> got(state.begin() + slot,
                                         state.begin() + slot + sequence.state_size);
            expect_rows_close(got, states[p], 1, row, "state after " + std::to_string(p));
          }
        }
        ASSERT_EQ(at, kLength);
        expect_rows_close(out, expected, kLength, row,
                          shape_text(call_of(sequence.args(state, out, 0, 1), Phase::kPrefill)));
      });
    }
  }
}

// Passes of any size on any number of threads.
template <typename Sequence>
void expect_chunks_agree(Op op, const Sequence& sequence, int64_t columns) {
  for_each_row(op, [&](const Variant& row) {
    if (row.numerics == NumericsClass::kFast) return;
    std::vector<float> first;
    for (const int64_t chunk : {1, 2, 3, 7, 16, 39}) {
      Runner runner(static_cast<int>(chunk % 3) + 1);
      std::vector<float> state = sequence.fresh_state();
      std::vector<float> out(static_cast<size_t>(kLength * columns), std::nanf(""));
      for (int64_t at = 0; at < kLength; at += chunk) {
        run_pass(runner, row, sequence, state, out, at, std::min(chunk, kLength - at));
      }
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(out.data(), first.data(), kLength * columns))
          << row.name << " chunk " << chunk;
    }
  });
}

TEST(ExactCausalConv, ChunksAndThreadsMoveNoBit) {
  Random random(42);
  expect_chunks_agree(Op::kCausalConv, Convolution(kLength, 150, 4, 3, random), 150);
  expect_chunks_agree(Op::kCausalConv, Convolution(kLength, 150, 4, 9, random), 150);
}

TEST(ExactGatedDeltaRule, ChunksAndThreadsMoveNoBit) {
  Random random(43);
  for (const int64_t slots : {1, 4}) {
    const DeltaRule sequence(kLength, {2, 4, 24, 112}, slots, random);
    expect_chunks_agree(Op::kGatedDeltaRule, sequence, sequence.out_width);
  }
}

// Rows that were drafted and rejected, up to kBack of them, leave no trace: going on from an
// earlier position gives the bits of a run that never saw them.
constexpr int64_t kBack = 4;

template <typename Sequence>
void expect_rollback(Op op, const Sequence& drafted, const Sequence& kept, int64_t columns) {
  for_each_row(op, [&](const Variant& row) {
    if (row.numerics == NumericsClass::kFast) return;
    Runner runner(2);
    for (const int64_t accepted : {0, 1, 3}) {
      std::vector<float> state = drafted.fresh_state();
      std::vector<float> plain_state = state;
      std::vector<float> out(static_cast<size_t>(kLength * columns)), plain = out;
      run_pass(runner, row, drafted, state, out, 0, 12);
      run_pass(runner, row, drafted, state, out, 12, kBack);
      run_pass(runner, row, kept, state, out, 12 + accepted, 3);
      run_pass(runner, row, drafted, plain_state, plain, 0, 12);
      if (accepted > 0) run_pass(runner, row, drafted, plain_state, plain, 12, accepted);
      run_pass(runner, row, kept, plain_state, plain, 12 + accepted, 3);
      EXPECT_TRUE(same_bits(out.data(), plain.data(), (15 + accepted) * columns))
          << row.name << " after " << accepted;
    }
  });
}

TEST(ExactCausalConv, AnEarlierPositionGoesOnAsIfNothingHadFollowed) {
  Random random(44);
  const Convolution drafted(kLength, 70, 4, 3 + kBack, random);
  Convolution kept = drafted;
  kept.x = random.floats(kLength * 70);
  expect_rollback(Op::kCausalConv, drafted, kept, 70);
}

TEST(ExactGatedDeltaRule, AnEarlierPositionGoesOnAsIfNothingHadFollowed) {
  Random random(45);
  const DeltaRule drafted(kLength, {1, 2, 16, 32}, 1 + kBack, random);
  DeltaRule kept = drafted;
  kept.qkv = random.floats(kLength * kept.qkv_width);
  expect_rollback(Op::kGatedDeltaRule, drafted, kept, drafted.out_width);
}

TEST(EveryVariant, GatedRmsNormMatchesFloat64) {
  Random random(46);
  Runner runner(2);
  for (const int64_t k : {1, 7, 64, 128, 251}) {
    const int64_t rows = 5;
    const std::vector<float> x = random.floats(rows * k), z = random.floats(rows * k, 3);
    const std::vector<float> weight = random.floats(k);
    std::vector<float> expected(x.size());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += std::pow(static_cast<double>(x[r * k + i]), 2);
      const double scale = 1 / std::sqrt(sum / static_cast<double>(k) + 1e-6);
      for (int64_t i = 0; i < k; ++i) {
        expected[r * k + i] = static_cast<float>(x[r * k + i] * scale * weight[i] *
                                                 silu(static_cast<double>(z[r * k + i])));
      }
    }
    for_each_row(Op::kGatedRmsNorm, [&](const Variant& row) {
      std::vector<float> out = x;  // in place
      const GatedRmsNormArgs args{out.data(), z.data(), weight.data(), out.data(), rows, k, 1e-6F};
      runner.run(row, args);
      expect_stamped(runner, row, call_of(args, Phase::kPrefill));
      expect_rows_close(out, expected, rows, row, std::to_string(k));
      std::vector<float> alone = x;
      for (int64_t r = 0; r < rows; ++r) {
        float* at = alone.data() + r * k;
        runner.run(row, GatedRmsNormArgs{at, z.data() + r * k, weight.data(), at, 1, k, 1e-6F});
      }
      EXPECT_TRUE(same_bits(out.data(), alone.data(), rows * k)) << row.name;
      runner.trace().reset();
    });
  }
}

TEST(EveryVariant, SigmoidGateMatchesFloat64) {
  Random random(47);
  Runner runner(2);
  for (const int64_t k : {1, 9, 251, 1536}) {
    const std::vector<float> x = random.floats(3 * k);
    std::vector<float> gate = random.floats(3 * k, 3);
    gate[0] = -200;  // e^200 overflows float32: the product is 0
    std::vector<float> expected(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      expected[i] = static_cast<float>(x[i] / (1 + std::exp(-static_cast<double>(gate[i]))));
    }
    for_each_row(Op::kSigmoidGate, [&](const Variant& row) {
      std::vector<float> out = x, alone = x;
      const SigmoidGateArgs args{out.data(), gate.data(), 3, k};
      runner.run(row, args);
      expect_stamped(runner, row, call_of(args, Phase::kPrefill));
      expect_rows_close(out, expected, 3, row);
      EXPECT_NEAR(out[0], 0, 1e-30) << row.name;
      for (size_t i = 0; i < x.size(); ++i) {
        runner.run(row, SigmoidGateArgs{alone.data() + i, gate.data() + i, 1, 1});
      }
      EXPECT_TRUE(same_bits(out.data(), alone.data(), 3 * k)) << row.name;
      runner.trace().reset();
    });
  }
}

TEST(EveryVariant, GatedAddMatchesFloat64) {
  Random random(48);
  Runner runner(2);
  const std::vector<float> x = random.floats(3 * 37), y = random.floats(3 * 37);
  const std::vector<float> gate = {-1.5F, 0, 40};
  std::vector<float> expected(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double factor = 1 / (1 + std::exp(-static_cast<double>(gate[i / 37])));
    expected[i] = static_cast<float>(x[i] + factor * static_cast<double>(y[i]));
  }
  for_each_row(Op::kGatedAdd, [&](const Variant& row) {
    std::vector<float> out = x;
    const GatedAddArgs args{y.data(), gate.data(), out.data(), 3, 37};
    runner.run(row, args);
    expect_stamped(runner, row, call_of(args, Phase::kPrefill));
    expect_rows_close(out, expected, 3, row);
  });
}

TEST(EveryVariant, SplitGateParts) {
  Runner runner(2);
  std::vector<float> x(2 * 3 * 2 * 5);  // 2 rows of 3 heads of 5
  std::iota(x.begin(), x.end(), 0.0F);
  for_each_row(Op::kSplitGate, [&](const Variant& row) {
    std::vector<float> q(30), gate(30);
    const SplitGateArgs args{x.data(), q.data(), gate.data(), 2, 3, 5};
    runner.run(row, args);
    expect_stamped(runner, row, call_of(args, Phase::kPrefill));
    for (int head = 0; head < 6; ++head) {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(q[head * 5 + i], static_cast<float>(head * 10 + i));
        EXPECT_EQ(gate[head * 5 + i], static_cast<float>(head * 10 + 5 + i));
      }
    }
  });
}

TEST(EveryVariant, ConcatJoins) {
  Runner runner(2);
  const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8, 9, 10};
  for_each_row(Op::kConcat, [&](const Variant& row) {
    std::vector<float> out(10);
    const ConcatArgs args{a.data(), b.data(), out.data(), 2, 2, 3};
    runner.run(row, args);
    expect_stamped(runner, row, call_of(args, Phase::kPrefill));
    EXPECT_EQ(out, (std::vector<float>{1, 2, 5, 6, 7, 3, 4, 8, 9, 10})) << row.name;
  });
}

}  // namespace
}  // namespace reckon::kernels
