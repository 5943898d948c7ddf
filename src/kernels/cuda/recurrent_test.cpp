// The ops of recurrent layers and of gates: every row of the table against float64 over a whole
// sequence, and what exact promises: passes of any size give the same bits, and going on from an
// earlier position those of a run that never went further.
#include "kernels/cpu/recurrent_testing.h"

#include <cmath>
#include <numeric>

#include "kernels/cuda/device_testing.h"

namespace reckon::kernels::cuda {
namespace {

using kernels::testing::Convolution;
using kernels::testing::DeltaRule;
using kernels::testing::silu;
using testing::expect_rows_close;
using testing::Random;
using testing::same_bits;

constexpr double kTolerance = 1e-5;  // 1e-4 is allowed (docs/numerics.md)

constexpr int64_t kPasses[] = {5, 1, 1, 17, 2, 3, 1, 9};
constexpr int64_t kLength = 39;

class CudaRecurrent : public testing::DeviceTest {
 protected:
  // Runs the positions of a sequence in passes of `chunk` rows.
  template <typename Sequence>
  std::vector<float> in_chunks(const Variant& row, const Sequence& sequence, int64_t columns,
                               int64_t chunk) {
    std::vector<float> state = sequence.fresh_state();
    std::vector<float> out(static_cast<size_t>(kLength * columns), std::nanf(""));
    for (int64_t at = 0; at < kLength; at += chunk) {
      device->run(row, sequence.args(state, out, at, std::min(chunk, kLength - at)));
    }
    return out;
  }

  template <typename Sequence>
  void expect_chunks_agree(Op op, const Sequence& sequence, int64_t columns) {
    for_each_row(op, [&](const Variant& row) {
      const std::vector<float> expected = in_chunks(row, sequence, columns, 1);
      for (const int64_t chunk : {2, 3, 7, 16, 17, 39}) {
        EXPECT_TRUE(same_bits(in_chunks(row, sequence, columns, chunk), expected)) << chunk;
      }
    });
  }

  // Rows that were drafted and rejected, up to kBack of them, leave no trace.
  static constexpr int64_t kBack = 15;

  template <typename Sequence>
  void expect_rollback(Op op, const Sequence& drafted, const Sequence& kept, int64_t columns) {
    for_each_row(op, [&](const Variant& row) {
      for (int64_t accepted = 0; accepted <= kBack; ++accepted) {
        std::vector<float> state = drafted.fresh_state();
        std::vector<float> plain_state = state;
        std::vector<float> out(static_cast<size_t>(kLength * columns)), plain = out;
        const auto pass = [&](const Sequence& of, std::vector<float>& states,
                              std::vector<float>& outs, int64_t first, int64_t rows) {
          if (rows > 0) device->run(row, of.args(states, outs, first, rows));
        };
        pass(drafted, state, out, 0, 12);
        pass(drafted, state, out, 12, kBack);
        pass(kept, state, out, 12 + accepted, 3);
        pass(drafted, plain_state, plain, 0, 12);
        pass(drafted, plain_state, plain, 12, accepted);
        pass(kept, plain_state, plain, 12 + accepted, 3);
        const auto end = static_cast<size_t>((15 + accepted) * columns);
        out.resize(end);
        plain.resize(end);
        EXPECT_TRUE(same_bits(out, plain)) << "after " << accepted;
      }
    });
  }
};

TEST_F(CudaRecurrent, CausalConvMatchesFloat64) {
  Random random(40);
  struct Shape {
    int64_t channels, width, ring;
  };
  for (const Shape& s :
       {Shape{1, 1, 1}, Shape{5, 2, 1}, Shape{64, 4, 3}, Shape{129, 4, 3}, Shape{200, 4, 20},
        Shape{33, 3, 100}, Shape{31, 5, 7}, Shape{31, 20, 19}, Shape{3000, 4, 18}}) {
    const Convolution sequence(kLength, s.channels, s.width, s.ring, random);
    const std::vector<float> expected = sequence.expected();
    for_each_row(Op::kCausalConv, [&](const Variant& row) {
      std::vector<float> state = sequence.fresh_state();
      std::vector<float> out(expected.size(), std::nanf(""));
      int64_t at = 0;
      for (const int64_t rows : kPasses) {
        run(row, sequence.args(state, out, at, rows), {&out, &state});
        at += rows;
      }
      ASSERT_EQ(at, kLength);
      expect_rows_close(out, expected, kLength, kTolerance);
    });
  }
}

TEST_F(CudaRecurrent, CausalConvChunksMoveNoBit) {
  Random random(42);
  expect_chunks_agree(Op::kCausalConv, Convolution(kLength, 150, 4, 3, random), 150);
  expect_chunks_agree(Op::kCausalConv, Convolution(kLength, 150, 4, 18, random), 150);
}

TEST_F(CudaRecurrent, CausalConvGoesOnFromAnEarlierPosition) {
  Random random(44);
  const Convolution drafted(kLength, 70, 4, 3 + kBack, random);
  Convolution kept = drafted;
  kept.x = random.floats(kLength * 70);
  expect_rollback(Op::kCausalConv, drafted, kept, 70);
}

TEST_F(CudaRecurrent, GatedDeltaRuleMatchesFloat64) {
  Random random(41);
  using Heads = DeltaRule::Heads;
  for (const Heads& heads :
       {Heads{3, 9, 1, 1}, Heads{2, 4, 8, 16}, Heads{1, 3, 20, 24}, Heads{2, 2, 33, 40},
        Heads{2, 6, 128, 128}, Heads{3, 3, 7, 5}, Heads{1, 1, 64, 208}, Heads{1, 2, 65, 9},
        Heads{1, 1, 256, 44}, Heads{2, 6, 16, 48, KeyHeadOrder::kTiled},
        Heads{3, 6, 65, 9, KeyHeadOrder::kTiled}}) {
    for (const int64_t slots : {1, 2, 7, 17}) {
      const DeltaRule sequence(kLength, heads, slots, random);
      std::vector<float> expected;
      std::vector<std::vector<float>> states;
      sequence.expected(expected, states);
      for_each_row(Op::kGatedDeltaRule, [&](const Variant& row) {
        std::vector<float> state = sequence.fresh_state();
        std::vector<float> out(expected.size(), std::nanf(""));
        int64_t at = 0;
        for (const int64_t rows : kPasses) {
          run(row, sequence.args(state, out, at, rows), {&out, &state});
          at += rows;
          for (int64_t p = at - std::min(rows, slots); p < at; ++p) {
            const auto slot = state.begin() + (p + 1) % slots * sequence.state_size;
            expect_rows_close({slot, slot + sequence.state_size}, states[p], 1, kTolerance);
          }
        }
        ASSERT_EQ(at, kLength);
        expect_rows_close(out, expected, kLength, kTolerance);
      });
    }
  }
}

TEST_F(CudaRecurrent, GatedDeltaRuleChunksMoveNoBit) {
  Random random(43);
  for (const int64_t slots : {1, 4, 17}) {
    const DeltaRule sequence(kLength, {2, 4, 24, 116}, slots, random);
    expect_chunks_agree(Op::kGatedDeltaRule, sequence, sequence.out_width);
    const DeltaRule whole(kLength, {1, 3, 128, 128}, slots, random);
    expect_chunks_agree(Op::kGatedDeltaRule, whole, whole.out_width);
    const DeltaRule tiled(kLength, {2, 4, 128, 32, KeyHeadOrder::kTiled}, slots, random);
    expect_chunks_agree(Op::kGatedDeltaRule, tiled, tiled.out_width);
  }
}

TEST_F(CudaRecurrent, GatedDeltaRuleGoesOnFromAnEarlierPosition) {
  Random random(45);
  const DeltaRule drafted(kLength, {1, 2, 16, 32}, 1 + kBack, random);
  DeltaRule kept = drafted;
  kept.qkv = random.floats(kLength * kept.qkv_width);
  expect_rollback(Op::kGatedDeltaRule, drafted, kept, drafted.out_width);
}

TEST_F(CudaRecurrent, GatedRmsNormMatchesFloat64) {
  Random random(46);
  for (const int64_t k : {1, 7, 64, 128, 251, 1028, 3001}) {
    for (const int64_t rows : {1, 5, 17}) {
      const std::vector<float> x = random.floats(rows * k), z = random.floats(rows * k, 3);
      const std::vector<float> weight = random.floats(k);
      std::vector<float> expected(x.size());
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) sum += std::pow(static_cast<double>(x[r * k + i]), 2);
        const double scale = 1 / std::sqrt(sum / static_cast<double>(k) + 1e-6);
        for (int64_t i = r * k; i < (r + 1) * k; ++i) {
          expected[i] = static_cast<float>(x[i] * scale * weight[i - r * k] *
                                           silu(static_cast<double>(z[i])));
        }
      }
      for_each_row(Op::kGatedRmsNorm, [&](const Variant& row) {
        std::vector<float> out(x.size());
        run(row, GatedRmsNormArgs{x.data(), z.data(), weight.data(), out.data(), rows, k, 1e-6F},
            {&out});
        expect_rows_close(out, expected, rows, kTolerance);
        std::vector<float> alone = x;  // in place
        for (int64_t r = 0; r < rows; ++r) {
          float* at = alone.data() + r * k;
          device->run(row, GatedRmsNormArgs{at, z.data() + r * k, weight.data(), at, 1, k, 1e-6F});
        }
        EXPECT_TRUE(same_bits(alone, out)) << rows << " x " << k;
      });
    }
  }
}

TEST_F(CudaRecurrent, SigmoidGateMatchesFloat64) {
  Random random(47);
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
      run(row, SigmoidGateArgs{out.data(), gate.data(), 3, k}, {&out});
      expect_rows_close(out, expected, 3, kTolerance);
      EXPECT_NEAR(out[0], 0, 1e-30);
      for (int64_t r = 0; r < 3; ++r) {
        device->run(row, SigmoidGateArgs{alone.data() + r * k, gate.data() + r * k, 1, k});
      }
      EXPECT_TRUE(same_bits(alone, out)) << k;
    });
  }
}

TEST_F(CudaRecurrent, GatedAddMatchesFloat64) {
  Random random(48);
  for (const int64_t k : {1, 9, 257, 2048}) {
    const std::vector<float> y = random.floats(5 * k), before = random.floats(5 * k);
    const std::vector<float> gate = random.floats(5, 3);
    std::vector<float> expected(y.size());
    for (int64_t i = 0; i < 5 * k; ++i) {
      const double share = 1 / (1 + std::exp(-static_cast<double>(gate[i / k])));
      expected[i] = static_cast<float>(before[i] + share * y[i]);
    }
    for_each_row(Op::kGatedAdd, [&](const Variant& row) {
      std::vector<float> out = before, alone = before;
      run(row, GatedAddArgs{y.data(), gate.data(), out.data(), 5, k}, {&out});
      expect_rows_close(out, expected, 5, kTolerance);
      for (int64_t r = 0; r < 5; ++r) {
        device->run(row,
                    GatedAddArgs{y.data() + r * k, gate.data() + r, alone.data() + r * k, 1, k});
      }
      EXPECT_TRUE(same_bits(alone, out)) << k;
    });
  }
}

TEST_F(CudaRecurrent, SplitGateParts) {
  for (const auto& [rows, heads, dim] :
       {std::array<int64_t, 3>{2, 3, 5}, {1, 1, 1}, {7, 24, 256}, {3, 2, 129}}) {
    std::vector<float> x(static_cast<size_t>(rows * heads * 2 * dim));
    std::iota(x.begin(), x.end(), 0.0F);
    std::vector<float> expected_q, expected_gate;
    for (int64_t head = 0; head < rows * heads; ++head) {
      const auto at = x.begin() + head * 2 * dim;
      expected_q.insert(expected_q.end(), at, at + dim);
      expected_gate.insert(expected_gate.end(), at + dim, at + 2 * dim);
    }
    for_each_row(Op::kSplitGate, [&](const Variant& row) {
      std::vector<float> q(expected_q.size()), gate(expected_q.size());
      run(row, SplitGateArgs{x.data(), q.data(), gate.data(), rows, heads, dim}, {&q, &gate});
      EXPECT_EQ(q, expected_q);
      EXPECT_EQ(gate, expected_gate);
    });
  }
}

TEST_F(CudaRecurrent, ConcatJoins) {
  for (const auto& [rows, a_columns, b_columns] :
       {std::array<int64_t, 3>{2, 2, 3}, {1, 1, 1}, {5, 64, 64}, {3, 300, 1}}) {
    std::vector<float> a(static_cast<size_t>(rows * a_columns));
    std::vector<float> b(static_cast<size_t>(rows * b_columns));
    std::iota(a.begin(), a.end(), 1.0F);
    std::iota(b.begin(), b.end(), -1e4F);
    std::vector<float> expected;
    for (int64_t r = 0; r < rows; ++r) {
      expected.insert(expected.end(), a.begin() + r * a_columns, a.begin() + (r + 1) * a_columns);
      expected.insert(expected.end(), b.begin() + r * b_columns, b.begin() + (r + 1) * b_columns);
    }
    for_each_row(Op::kConcat, [&](const Variant& row) {
      std::vector<float> out(expected.size());
      run(row, ConcatArgs{a.data(), b.data(), out.data(), rows, a_columns, b_columns}, {&out});
      EXPECT_EQ(out, expected);
    });
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
