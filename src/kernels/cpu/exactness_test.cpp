// What "exact" promises, for every exact row of the tables: each output row has the same bits
// whatever else is in the batch, on any number of threads, in any tile order; and the variants of
// one weight format agree with each other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/variants_testing.h"

namespace reckon::kernels {
namespace {

using testing::exact_rows;
using testing::Random;
using testing::Runner;
using testing::same_bits;

constexpr DType kWeightTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                                  DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ6_K,
                                  DType::kP8,   DType::kP4};

// Whether k may be any number.
bool takes_any_k(DType type) {
  return block_elements(type) == 1 || pads_rows(type);
}

// k, or the next that the type can have.
int64_t columns_for(DType type, int64_t k) {
  const int64_t block = pads_rows(type) ? 1 : block_elements(type);
  return (k + block - 1) / block * block;
}

// The exact kernels that multiply a weight of the type.
std::vector<const Variant*> exact_matmuls(DType type) {
  OpCall call;
  call.weight_type = type;
  call.rows = call.n = 1;
  call.k = columns_for(type, 1);
  std::vector<const Variant*> rows = exact_rows(Op::kMatmul);
  std::erase_if(
      rows, [&](const Variant* row) { return !row->supports(testing::in_panels(call)).empty(); });
  return rows;
}

struct Matmul {
  DType type;
  int64_t n, k;
  std::vector<float> x;
  std::vector<uint8_t> weights;

  Matmul(DType weight_type, int64_t rows, int64_t outputs, int64_t columns, Random& random)
      : type(weight_type),
        n(outputs),
        k(columns),
        x(random.floats(rows * columns)),
        weights(random.weights(weight_type, outputs, columns)) {}

  // Rows first ... first + rows - 1 in one call.
  [[nodiscard]] std::vector<float> run(Runner& runner, const Variant& variant, int64_t first,
                                       int64_t rows, KernelParams params = {}) const {
    std::vector<float> out(static_cast<size_t>(rows * n), std::nanf(""));
    MatmulArgs args;
    args.x = x.data() + first * k;
    args.weight = weights.data();
    args.weight_type = type;
    args.out = out.data();
    args.rows = rows;
    args.n = n;
    args.k = k;
    runner.run(variant, args, params);
    return out;
  }
};

TEST(ExactMatmul, RowsDoNotDependOnTheBatchNorOnThreads) {
  constexpr int64_t kRows = 33;
  Random random(11);
  Runner one(1), two(2), three(3);
  for (const DType type : kWeightTypes) {
    const int64_t wide = columns_for(type, takes_any_k(type) ? 1051 : 1056);
    const int64_t narrow = columns_for(type, 64);
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{45, wide}, {5, narrow}}) {
      const Matmul matmul(type, kRows, n, k, random);
      for (const Variant* row : exact_matmuls(type)) {
        std::vector<float> alone;
        for (int64_t r = 0; r < kRows; ++r) {
          const std::vector<float> out = matmul.run(one, *row, r, 1);
          alone.insert(alone.end(), out.begin(), out.end());
        }
        for (int64_t rows = 1; rows <= kRows; ++rows) {
          for (Runner* runner : {&one, &two, &three}) {
            const std::vector<float> out = matmul.run(*runner, *row, 0, rows);
            EXPECT_TRUE(same_bits(out.data(), alone.data(), rows * n))
                << row->name << " " << dtype_name(type) << " rows " << rows;
          }
          // The last rows of the batch, so that a row's place in it does not matter either.
          const std::vector<float> out = matmul.run(two, *row, kRows - rows, rows);
          EXPECT_TRUE(same_bits(out.data(), alone.data() + (kRows - rows) * n, rows * n))
              << row->name << " " << dtype_name(type) << " last rows " << rows;
        }
      }
    }
  }
}

void expect_variants_agree(DType type, int64_t rows, int64_t n, int64_t k, Runner& runner,
                           Random& random) {
  const Matmul matmul(type, rows, n, k, random);
  std::vector<float> first;
  for (const Variant* row : exact_matmuls(type)) {
    const std::vector<float> out = matmul.run(runner, *row, 0, rows);
    if (first.empty()) first = out;
    EXPECT_TRUE(same_bits(out.data(), first.data(), rows * n))
        << row->name << " " << dtype_name(type) << " k " << k;
  }
}

TEST(ExactMatmul, VariantsOfAFormatAgree) {
  Random random(12);
  Runner runner(2);
  for (const DType type : kWeightTypes) {
    for (const int64_t rows : {1, 4, 40}) {
      expect_variants_agree(type, rows, 37, columns_for(type, 32 * random.integer(1, 60)), runner,
                            random);
      if (!takes_any_k(type)) continue;
      for (const int64_t k : {int64_t{1}, int64_t{16}, int64_t{48}, random.integer(1, 1300)}) {
        expect_variants_agree(type, rows, 37, k, runner, random);
      }
    }
  }
}

TEST(ExactMatmul, TileOrderMovesNoBit) {
  constexpr int64_t kRows = 70, kN = 300;
  Random random(13);
  Runner runner(3);
  for (const DType type : kWeightTypes) {
    const Matmul matmul(type, kRows, kN, columns_for(type, 576), random);
    for (const Variant* row : exact_matmuls(type)) {
      const std::vector<float> by_row = matmul.run(runner, *row, 0, kRows, {TileOrder::kRow});
      const std::vector<float> by_band = matmul.run(runner, *row, 0, kRows, {TileOrder::kBand8});
      EXPECT_TRUE(same_bits(by_row.data(), by_band.data(), kRows * kN))
          << row->name << " " << dtype_name(type);
    }
  }
}

TEST(ExactMatmul, TileOrderCountsOnlyWhereItMakesADifference) {
  for (const Variant* row : exact_rows(Op::kMatmul)) {
    if (row->effective == nullptr) continue;
    const auto effective = [&](int64_t rows, int64_t n) {
      OpCall call;
      call.rows = rows;
      call.n = n;
      call.k = 64;
      return row->effective(call, {TileOrder::kBand8}, {}).tile_order;
    };
    EXPECT_EQ(effective(512, 576), TileOrder::kBand8) << row->name;
    EXPECT_EQ(effective(512, 16), TileOrder::kRow) << row->name;  // one weight tile
    EXPECT_EQ(effective(1, 576), TileOrder::kRow) << row->name;   // one token tile
    EXPECT_EQ(row->effective({}, {}, {}).tile_order, TileOrder::kRow) << row->name;
  }
}

TEST(ExactMatmul, BadActivationsSpoilTheirOwnRowOnly) {
  constexpr int64_t kRows = 19, kN = 21, kK = 256;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Random random(14);
  Runner runner(2);
  for (const DType type : kWeightTypes) {
    const Matmul clean(type, kRows, kN, kK, random);
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      Matmul spoiled = clean;
      spoiled.x[3 * kK + 70] = bad;
      for (const Variant* row : exact_matmuls(type)) {
        for (const int64_t rows : {4, 19}) {
          const std::vector<float> expected = clean.run(runner, *row, 0, rows);
          const std::vector<float> out = spoiled.run(runner, *row, 0, rows);
          for (int64_t r = 0; r < rows; ++r) {
            if (r != 3) {
              EXPECT_TRUE(same_bits(out.data() + r * kN, expected.data() + r * kN, kN))
                  << row->name;
              continue;
            }
            for (int64_t j = 0; j < kN; ++j) {
              const float value = out[r * kN + j];
              const bool nan_expected = block_elements(type) > 1 || std::isnan(bad);
              EXPECT_TRUE(nan_expected ? std::isnan(value) : !std::isfinite(value))
                  << row->name << " " << dtype_name(type) << " " << bad;
            }
          }
        }
      }
    }
  }
}

// Whatever codes the padding of a row has, and whatever follows a row of activations.
TEST(ExactMatmul, PaddingCountsForNothing) {
  Random random(20);
  Runner runner(2);
  for (const int64_t k : {1, 16, 31, 32, 33, 48, 63, 65, 560}) {
    for (const int64_t rows : {1, 3, 17}) {
      Matmul matmul(DType::kP4, rows, 9, k, random);
      Matmul other = matmul;
      const int64_t row_size = row_bytes(DType::kP4, k);
      for (int64_t j = 0; j < 9; ++j) {
        uint8_t* block = other.weights.data() + j * row_size + (k - 1) / 64 * 36 + 4;
        for (int64_t i = (k - 1) % 64 + 1; i < 64; ++i) {
          block[i % 32] = static_cast<uint8_t>(block[i % 32] ^ (i < 32 ? 0x0f : 0xf0));
        }
      }
      for (const Variant* row : exact_matmuls(DType::kP4)) {
        const std::vector<float> out = matmul.run(runner, *row, 0, rows);
        EXPECT_TRUE(same_bits(out.data(), other.run(runner, *row, 0, rows).data(), rows * 9))
            << row->name << " k " << k;
      }
    }
  }
}

TEST(ExactMatmul, ZeroAndTinyRowsGiveZero) {
  Random random(15);
  Runner runner;
  for (const DType type : kWeightTypes) {
    if (block_elements(type) == 1) continue;
    Matmul matmul(type, 9, 21, 256, random);
    for (float& value : matmul.x) value = 0;
    matmul.x[256] = 1e-38F;  // 32767 / amax would be infinite
    for (const Variant* row : exact_matmuls(type)) {
      for (const int64_t rows : {2, 9}) {
        for (const float value : matmul.run(runner, *row, 0, rows))
          EXPECT_EQ(value, 0) << row->name;
      }
    }
  }
}

// Rows of one sequence, in chunks of any size.
TEST(ExactAttention, ChunksAndThreadsMoveNoBit) {
  constexpr int64_t kHeads = 6, kKvHeads = 2, kDim = 40, kLength = 300, kCapacity = 310;
  Random random(16);
  const std::vector<float> q = random.floats(kLength * kHeads * kDim);
  const std::vector<float> k = random.floats(kLength * kKvHeads * kDim);
  const std::vector<float> v = random.floats(kLength * kKvHeads * kDim);
  std::vector<const Variant*> rows;
  for (const Op op : {Op::kAttention, Op::kWindowAttention}) {
    for (const Variant* row : exact_rows(op)) rows.push_back(row);
    rows.push_back(&testing::reference_row(op));
  }
  for (const Variant* row : rows) {
    std::vector<float> first;
    for (const int64_t chunk : {1, 2, 3, 7, 16, 33, 64, 100, 300}) {
      Runner runner(static_cast<int>(chunk % 3) + 1);
      // Whatever lies beyond the rows stored so far must not be read.
      std::vector<float> cache_k(kKvHeads * kCapacity * kDim, std::nanf(""));
      std::vector<float> cache_v = cache_k;
      std::vector<float> out(q.size());
      for (int64_t at = 0; at < kLength; at += chunk) {
        AttentionArgs args;
        args.q = q.data() + at * kHeads * kDim;
        args.k = k.data() + at * kKvHeads * kDim;
        args.v = v.data() + at * kKvHeads * kDim;
        args.cache_k = cache_k.data();
        args.cache_v = cache_v.data();
        args.out = out.data() + at * kHeads * kDim;
        args.rows = std::min(chunk, kLength - at);
        args.heads = kHeads;
        args.kv_heads = kKvHeads;
        args.head_dim = kDim;
        args.capacity = kCapacity;
        args.first_position = at;
        args.scale = 0.2F;
        if (row->op == Op::kWindowAttention) args.window = 75;  // no multiple of a block
        runner.run(*row, args);
      }
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(out.data(), first.data(), static_cast<int64_t>(out.size())))
          << row->name << " chunk " << chunk;
    }
  }
}

// A key or value that is not a number spoils the rows that see it, and no row before them.
TEST(ExactAttention, BadRowsDoNotReachBack) {
  constexpr int64_t kRows = 12, kDim = 40, kBad = 6;
  Random random(17);
  Runner runner(2);
  const std::vector<float> q = random.floats(kRows * kDim);
  const std::vector<float> k = random.floats(kRows * kDim);
  const std::vector<float> v = random.floats(kRows * kDim);
  for (const Variant* row : exact_rows(Op::kAttention)) {
    const auto run = [&](const std::vector<float>& keys, const std::vector<float>& values) {
      std::vector<float> cache_k(kRows * kDim), cache_v(kRows * kDim), out(kRows * kDim);
      const AttentionArgs args{q.data(),
                               keys.data(),
                               values.data(),
                               cache_k.data(),
                               cache_v.data(),
                               DType::kF32,
                               out.data(),
                               kRows,
                               1,
                               1,
                               kDim,
                               kRows,
                               0,
                               0.2F};
      runner.run(*row, args);
      return out;
    };
    const std::vector<float> expected = run(k, v);
    std::vector<float> bad_k = k, bad_v = v;
    bad_k[kBad * kDim + 3] = std::nanf("");
    bad_v[kBad * kDim + 3] = std::nanf("");
    for (const std::vector<float>& out : {run(bad_k, v), run(k, bad_v)}) {
      EXPECT_TRUE(same_bits(out.data(), expected.data(), kBad * kDim)) << row->name;
      for (int64_t r = kBad; r < kRows; ++r) EXPECT_TRUE(std::isnan(out[r * kDim + 3]));
    }
  }
}

// Position r alone and in a batch; and the reference's bits, which the portable variant promises.
TEST(ExactRope, RowsDoNotDependOnTheBatch) {
  constexpr int64_t kRows = 5, kHeads = 3, kDim = 24;
  Random random(18);
  const std::vector<float> x = random.floats(kRows * kHeads * kDim);
  for (const RopePairing pairing : {RopePairing::kHalf, RopePairing::kAdjacent}) {
    std::vector<float> expected = x;
    Runner(1).run(testing::reference_row(Op::kRope),
                  RopeArgs{expected.data(), kRows, kHeads, kDim, 16, 900, 1e4, pairing});
    for (const Variant* row : exact_rows(Op::kRope)) {
      std::vector<float> batch = x, single = x;
      Runner(3).run(*row, RopeArgs{batch.data(), kRows, kHeads, kDim, 16, 900, 1e4, pairing});
      for (int64_t r = 0; r < kRows; ++r) {
        float* at = single.data() + r * kHeads * kDim;
        Runner(1).run(*row, RopeArgs{at, 1, kHeads, kDim, 16, 900 + r, 1e4, pairing});
      }
      EXPECT_EQ(batch, expected) << row->name;
      EXPECT_EQ(single, expected) << row->name;
    }
  }
}

TEST(ExactSwiglu, AnElementDependsOnItselfOnly) {
  constexpr int64_t kColumns = 37;
  Random random(19);
  Runner runner(2);
  const std::vector<float> gate = random.floats(3 * kColumns), up = random.floats(3 * kColumns);
  for (const Variant* row : exact_rows(Op::kSwiglu)) {
    std::vector<float> batch(gate.size()), single(gate.size());
    runner.run(*row, SwigluArgs{gate.data(), up.data(), batch.data(), 3, kColumns});
    for (size_t i = 0; i < gate.size(); ++i) {
      runner.run(*row, SwigluArgs{gate.data() + i, up.data() + i, single.data() + i, 1, 1});
    }
    EXPECT_EQ(batch, single) << row->name;
  }
}

TEST(ExactGeglu, AnElementDependsOnItselfOnly) {
  constexpr int64_t kColumns = 37;
  Random random(20);
  Runner runner(2);
  const std::vector<float> gate = random.floats(3 * kColumns), up = random.floats(3 * kColumns);
  for (const Variant* row : exact_rows(Op::kGeglu)) {
    std::vector<float> batch(gate.size()), single(gate.size());
    runner.run(*row, GegluArgs{gate.data(), up.data(), batch.data(), 3, kColumns});
    for (size_t i = 0; i < gate.size(); ++i) {
      runner.run(*row, GegluArgs{gate.data() + i, up.data() + i, single.data() + i, 1, 1});
    }
    EXPECT_EQ(batch, single) << row->name;
  }
}

}  // namespace
}  // namespace reckon::kernels
