// Every row of all tables against the reference, on shapes with tails of every kind.
#include "kernels/variants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/variants_testing.h"

namespace reckon::kernels {
namespace {

using testing::expect_rows_close;
using testing::expect_stamped;
using testing::for_each_row;
using testing::Random;
using testing::Runner;

struct MatmulShape {
  int64_t rows, n, k;
};

// What the codes of 8 bits of matmul_few.h say of activations.
std::vector<float> rounded_to_bytes(std::vector<float> x) {
  for (size_t g = 0; g < x.size(); g += 8) {
    float largest = 0;
    for (size_t i = g; i < g + 8; ++i) largest = std::max(largest, std::abs(x[i]));
    for (size_t i = g; i < g + 8; ++i) {
      x[i] = std::nearbyint(x[i] * (127 / largest)) * (largest / 127);
    }
  }
  return x;
}

std::vector<float> reference_matmul(MatmulArgs args, const std::vector<float>& x, Runner& runner) {
  std::vector<float> out(static_cast<size_t>(args.rows * args.n));
  args.x = x.data();
  args.out = out.data();
  runner.run(testing::reference_row(Op::kMatmul), args);
  runner.trace().reset();
  return out;
}

void check_matmul(DType type, const MatmulShape& shape, Runner& runner, Random& random) {
  const std::vector<float> x = random.floats(shape.rows * shape.k);
  const std::vector<uint8_t> weights = random.weights(type, shape.n, shape.k);
  MatmulArgs args;
  args.x = x.data();
  args.weight = weights.data();
  args.weight_type = type;
  args.rows = shape.rows;
  args.n = shape.n;
  args.k = shape.k;
  const std::vector<float> expected = reference_matmul(args, x, runner);
  const OpCall call = testing::in_panels(call_of(args, Phase::kPrefill));
  for_each_row(Op::kMatmul, [&](const Variant& row) {
    if (!row.supports(call).empty()) return;
    std::vector<float> out(expected.size(), std::nanf(""));
    args.out = out.data();
    runner.run(row, args);
    expect_stamped(runner, row, call);
    if (row.use == Use::kStream) {
      // Rounding to 8 bits shows in rows of a few values; beside it nothing is rounded to speak of.
      const std::vector<float> rounded = reference_matmul(args, rounded_to_bytes(x), runner);
      EXPECT_LE(testing::relative_error(out.data(), rounded.data(), shape.rows * shape.n), 1e-5)
          << row.name << " " << shape_text(call);
      if (shape.n < 64) return;
    }
    expect_rows_close(out, expected, shape.rows, row, shape_text(call), type);
  });
}

TEST(EveryVariant, MatmulOfBlocksMatchesReference) {
  Random random(1);
  Runner runner(2);
  for (const DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1}) {
    for (int64_t rows = 1; rows <= 17; ++rows) {
      check_matmul(type, {rows, random.integer(1, 70), 32 * random.integer(1, 40)}, runner, random);
    }
    check_matmul(type, {33, 135, 544}, runner, random);
    check_matmul(type, {2, 2880, 2880}, runner, random);
    check_matmul(type, {9, 31, 10944}, runner, random);
    for (const int64_t n : {7, 8, 9}) check_matmul(type, {3, n, 512}, runner, random);
    check_matmul(type, {8, 1, 512}, runner, random);
  }
}

TEST(EveryVariant, MatmulOfSuperBlocksMatchesReference) {
  Random random(10);
  Runner runner(2);
  for (const DType type : {DType::kQ4_K, DType::kQ6_K}) {
    for (int64_t rows = 1; rows <= 17; ++rows) {
      check_matmul(type, {rows, random.integer(1, 70), 256 * random.integer(1, 6)}, runner, random);
    }
    check_matmul(type, {33, 135, 768}, runner, random);
    check_matmul(type, {70, 300, 512}, runner, random);
    check_matmul(type, {2, 2880, 2816}, runner, random);
    check_matmul(type, {9, 31, 11008}, runner, random);
    for (const int64_t n : {7, 8, 9, 16}) check_matmul(type, {3, n, 512}, runner, random);
    check_matmul(type, {8, 1, 512}, runner, random);
  }
}

// Shapes with tails of every tile: against the reference, and in the same bits.
TEST(FastMatmul, EveryTileMatchesReferenceInTheSameBits) {
  const auto row = std::ranges::find_if(all_variants(), [](const Variant& variant) {
    return variant.op == Op::kMatmul && variant.name == std::string("fast_amx");
  });
  ASSERT_NE(row, all_variants().end());
  if (const std::string missing = testing::missing_isa(*row); !missing.empty()) {
    GTEST_SKIP() << missing;
  }
  Random random(30);
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    const int64_t block = block_elements(type);
    for (int i = 0; i < 12; ++i) {
      Runner runner(static_cast<int>(random.integer(1, 3)));
      MatmulShape shape{random.integer(1, 150), random.integer(1, 330),
                        block * random.integer(1, 1300 / block)};
      if (i == 0) shape = {1, 1, block};
      if (i == 1) shape = {129, 257, 512};
      const std::vector<float> x = random.floats(shape.rows * shape.k);
      const std::vector<uint8_t> weights = random.weights(type, shape.n, shape.k);
      MatmulArgs args;
      args.x = x.data();
      args.weight = weights.data();
      args.weight_type = type;
      args.rows = shape.rows;
      args.n = shape.n;
      args.k = shape.k;
      const auto run = [&](const Variant& variant, TileShape tile) {
        std::vector<float> out(static_cast<size_t>(shape.rows * shape.n), std::nanf(""));
        args.out = out.data();
        KernelParams wanted;
        wanted.tile = tile;
        runner.trace().reset();
        runner.run(variant, args, wanted);
        return out;
      };
      const std::string what = shape_text(call_of(args, Phase::kPrefill));
      const std::vector<float> expected =
          run(testing::reference_row(Op::kMatmul), TileShape::kAuto);
      const std::vector<float> square = run(*row, TileShape::kSquare);
      EXPECT_EQ(runner.trace().rows().at(0).row.params, "");
      expect_rows_close(square, expected, shape.rows, *row, what, type);
      for (const TileShape tile : {TileShape::kTall, TileShape::kWide}) {
        const std::vector<float> out = run(*row, tile);
        EXPECT_EQ(runner.trace().rows().at(0).row.params,
                  "tile=" + std::string(tile_shape_name(tile)));
        EXPECT_TRUE(testing::same_bits(out.data(), square.data(), static_cast<int64_t>(out.size())))
            << tile_shape_name(tile) << " " << what;
      }
    }
  }
}

const Variant& matmul_named(const char* name) {
  return *std::ranges::find_if(all_variants(), [&](const Variant& variant) {
    return variant.op == Op::kMatmul && variant.name == std::string(name);
  });
}

std::vector<float> run_matmul(const Variant& row, DType type, const MatmulShape& shape,
                              const std::vector<float>& x, const std::vector<uint8_t>& weights,
                              int threads) {
  std::vector<float> out(static_cast<size_t>(shape.rows * shape.n), std::nanf(""));
  MatmulArgs args;
  args.x = x.data();
  args.weight = weights.data();
  args.weight_type = type;
  args.out = out.data();
  args.rows = shape.rows;
  args.n = shape.n;
  args.k = shape.k;
  Runner runner(threads);
  runner.run(row, args);
  return out;
}

// K of one part and of several, tiles of rows and panels that are not whole.
TEST(FastMatmulOfAvx2, ARowHasTheBitsThatItHasAlone) {
  Random random(31);
  for (const char* name : {"fast_avx2", "fast_bytes_avx2"}) {
    const Variant& row = matmul_named(name);
    if (const std::string missing = testing::missing_isa(row); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
    for (const int64_t k : {256, 2304}) {
      const MatmulShape shape{23, 37, k}, one{1, 37, k};
      const std::vector<float> x = random.floats(shape.rows * k);
      const std::vector<uint8_t> weights = random.weights(DType::kQ4_K, shape.n, k);
      const auto all = run_matmul(row, DType::kQ4_K, shape, x, weights, 3);
      for (int64_t r = 0; r < shape.rows; ++r) {
        const std::vector<float> alone(x.begin() + r * k, x.begin() + (r + 1) * k);
        const auto out = run_matmul(row, DType::kQ4_K, one, alone, weights, 1);
        EXPECT_TRUE(testing::same_bits(out.data(), all.data() + r * shape.n, shape.n))
            << name << " K=" << k << " row " << r;
      }
    }
  }
}

// The float kernel rounds nothing but sums; the other rounds activations to 8 bits, and groups with
// an activation far beyond the others (as Random has them) to 16, which keeps it well below the
// bound of its class.
TEST(FastMatmulOfAvx2, RoundingIsAsSmallAsItSays) {
  Random random(32);
  const MatmulShape shape{48, 256, 2048};
  const std::vector<float> x = random.floats(shape.rows * shape.k);
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ4_K}) {
    const std::vector<uint8_t> weights = random.weights(type, shape.n, shape.k);
    const auto expected =
        run_matmul(testing::reference_row(Op::kMatmul), type, shape, x, weights, 2);
    for (const auto& [name, bound] : {std::pair{"fast_avx2", 1e-5}, {"fast_bytes_avx2", 6e-3}}) {
      const Variant& row = matmul_named(name);
      if (!testing::missing_isa(row).empty()) GTEST_SKIP() << testing::missing_isa(row);
      const auto out = run_matmul(row, type, shape, x, weights, 2);
      EXPECT_LE(testing::relative_error(out.data(), expected.data(), shape.rows * shape.n), bound)
          << name << " " << dtype_name(type);
    }
  }
}

// The largest codes of activations and weights: sums of 16 bits must hold them.
TEST(EveryVariant, MatmulOfTheLargestCodesMatchesReference) {
  Runner runner(1);
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ6_K}) {
    for (const float sign : {1.0F, -1.0F}) {
      const MatmulShape shape{7, 16, 512};
      const std::vector<float> x(static_cast<size_t>(shape.rows * shape.k), 3 * sign);
      Random random(33);
      std::vector<uint8_t> weights = random.weights(type, shape.n, shape.k);
      const int64_t block = row_bytes(type, block_elements(type));
      for (int64_t at = 0; at < static_cast<int64_t>(weights.size()); at += block) {
        if (type == DType::kQ6_K) {
          std::fill_n(weights.begin() + at, 192, uint8_t{0xff});
        } else {
          const int64_t head = type == DType::kQ4_0 ? 2 : type == DType::kQ4_1 ? 4 : 16;
          std::fill_n(weights.begin() + at + head, block - head, uint8_t{0xff});
        }
      }
      const auto expected =
          run_matmul(testing::reference_row(Op::kMatmul), type, shape, x, weights, 1);
      for_each_row(Op::kMatmul, [&](const Variant& row) {
        OpCall call{Op::kMatmul, Phase::kPrefill, type, shape.rows, shape.n, shape.k, 0};
        if (row.use == Use::kStream || !row.supports(testing::in_panels(call)).empty()) return;
        const auto out = run_matmul(row, type, shape, x, weights, 1);
        expect_rows_close(out, expected, shape.rows, row, "", type);
      });
    }
  }
}

TEST(EveryVariant, MatmulOfFloatsMatchesReference) {
  Random random(2);
  Runner runner(2);
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (int64_t rows = 1; rows <= 17; ++rows) {
      check_matmul(type, {rows, random.integer(1, 70), random.integer(1, 1300)}, runner, random);
    }
    for (const int64_t k : {1, 3, 16, 48, 251}) {
      for (const int64_t rows : {1, 5, 8}) check_matmul(type, {rows, 19, k}, runner, random);
    }
    check_matmul(type, {33, 135, 529}, runner, random);
    check_matmul(type, {2, 2880, 2880}, runner, random);
    check_matmul(type, {9, 31, 10944}, runner, random);
  }
}

TEST(EveryVariant, MatmulOfPackedWeightsMatchesReference) {
  Random random(9);
  Runner runner(2);
  for (const DType type : {DType::kP8, DType::kP4}) {
    for (int64_t rows = 1; rows <= 17; ++rows) {
      check_matmul(type, {rows, random.integer(1, 70), random.integer(1, 1300)}, runner, random);
    }
    for (const int64_t k : {1, 16, 31, 33, 48, 63, 64, 65}) {
      for (const int64_t rows : {1, 5, 8, 9, 17}) {
        check_matmul(type, {rows, 67, k}, runner, random);
      }
    }
    check_matmul(type, {33, 135, 529}, runner, random);
    check_matmul(type, {2, 2880, 2880}, runner, random);
    check_matmul(type, {9, 31, 10944}, runner, random);
    for (const int64_t n : {1, 7, 8, 9}) check_matmul(type, {17, n, 512}, runner, random);
  }
}

TEST(EveryVariant, MatmulRefusesWithAReason) {
  OpCall call;
  call.op = Op::kMatmul;
  call.rows = call.n = 1;
  call.k = 48;
  for_each_row(Op::kMatmul, [&](const Variant& row) {
    call.k = 48;
    call.weight_type = DType::kQ4_1;
    EXPECT_NE(row.supports(call).find("k = 48 is not a multiple"), std::string::npos) << row.name;
    call.weight_type = DType::kI32;
    EXPECT_NE(row.supports(call).find("i32"), std::string::npos) << row.name;
    if (row.layout == WeightLayout::kPanels) {
      call.weight_type = DType::kQ4_1;
      call.k = 64;
      EXPECT_NE(row.supports(call).find("not laid out in panels"), std::string::npos) << row.name;
      return;
    }
    for (const DType type : {DType::kBF16, DType::kP4, DType::kP8}) {
      call.weight_type = type;
      EXPECT_EQ(row.supports(call), "") << row.name;
    }
  });
}

TEST(EveryVariant, EmbeddingIsTheDequantisedRow) {
  Random random(3);
  Runner runner;
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_1,
                           DType::kQ4_K, DType::kQ6_K, DType::kP8, DType::kP4}) {
    const int64_t k = pads_rows(type) ? 83 : block_elements(type) == 256 ? 512 : 96;
    const std::vector<uint8_t> table = random.weights(type, 11, k);
    const std::vector<int32_t> tokens = {3, 10, 0, 3};
    std::vector<float> expected(static_cast<size_t>(4 * k));
    for (size_t t = 0; t < tokens.size(); ++t) {
      dequantize_row(type, table.data() + tokens[t] * row_bytes(type, k), k,
                     expected.data() + static_cast<int64_t>(t) * k);
    }
    for_each_row(Op::kEmbedding, [&](const Variant& row) {
      std::vector<float> out(expected.size());
      EmbeddingArgs args{table.data(), type, tokens.data(), out.data(), 4, 11, k};
      runner.run(row, args);
      expect_stamped(runner, row, call_of(args, Phase::kPrefill));
      EXPECT_EQ(out, expected) << row.name;
    });
  }
}

TEST(EveryVariant, RmsNormMatchesFloat64) {
  Random random(4);
  Runner runner(2);
  for (const int64_t k : {1, 7, 64, 251, 576}) {
    const int64_t rows = 5;
    const std::vector<float> x = random.floats(rows * k);
    const std::vector<float> weight = random.floats(k);
    std::vector<float> expected(x.size());
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += std::pow(static_cast<double>(x[r * k + i]), 2);
      const double scale = 1 / std::sqrt(sum / static_cast<double>(k) + 1e-5);
      for (int64_t i = 0; i < k; ++i) {
        expected[r * k + i] = static_cast<float>(x[r * k + i] * scale * weight[i]);
      }
    }
    for_each_row(Op::kRmsNorm, [&](const Variant& row) {
      std::vector<float> out = x;  // in place
      const RmsNormArgs args{out.data(), weight.data(), out.data(), rows, k, 1e-5F};
      runner.run(row, args);
      expect_stamped(runner, row, call_of(args, Phase::kPrefill));
      expect_rows_close(out, expected, rows, row, std::to_string(k));
    });
  }
}

TEST(EveryVariant, SwigluMatchesFloat64) {
  Random random(5);
  Runner runner(2);
  for (const int64_t k : {1, 9, 251, 1536}) {
    const int64_t rows = 3;
    std::vector<float> gate = random.floats(rows * k, 3);
    gate[0] = -200;  // e^200 overflows float32: the product is -0
    const std::vector<float> up = random.floats(rows * k);
    std::vector<float> expected(gate.size());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      expected[i] = static_cast<float>(g / (1 + std::exp(-g)) * static_cast<double>(up[i]));
    }
    for_each_row(Op::kSwiglu, [&](const Variant& row) {
      std::vector<float> out = gate;  // in place
      const SwigluArgs args{out.data(), up.data(), out.data(), rows, k};
      runner.run(row, args);
      expect_stamped(runner, row, call_of(args, Phase::kPrefill));
      if (k > 1) expect_rows_close(out, expected, rows, row);
      EXPECT_NEAR(out[0], 0, 1e-30) << row.name;
    });
  }
}

TEST(EveryVariant, GegluMatchesFloat64) {
  Random random(25);
  Runner runner(2);
  for (const int64_t k : {1, 9, 251, 1536}) {
    const int64_t rows = 3;
    std::vector<float> gate = random.floats(rows * k, 3);
    gate[0] = -200;  // tanh is -1: the product is -0
    const std::vector<float> up = random.floats(rows * k);
    std::vector<float> expected(gate.size());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double g = gate[i];
      const double inner = std::sqrt(2 / std::acos(-1.0)) * (g + 0.044715 * g * g * g);
      expected[i] = static_cast<float>(g / 2 * (1 + std::tanh(inner)) * static_cast<double>(up[i]));
    }
    for_each_row(Op::kGeglu, [&](const Variant& row) {
      std::vector<float> out = gate;  // in place
      const GegluArgs args{out.data(), up.data(), out.data(), rows, k};
      runner.run(row, args);
      expect_stamped(runner, row, call_of(args, Phase::kPrefill));
      if (k > 1) expect_rows_close(out, expected, rows, row);
      EXPECT_NEAR(out[0], 0, 1e-30) << row.name;
    });
  }
}

TEST(EveryVariant, AddBiasAddsARow) {
  Random random(26);
  Runner runner(2);
  const std::vector<float> x = random.floats(3 * 37);
  const std::vector<float> bias = random.floats(37);
  for_each_row(Op::kAddBias, [&](const Variant& row) {
    std::vector<float> out = x;
    const AddBiasArgs args{out.data(), bias.data(), 3, 37};
    runner.run(row, args);
    expect_stamped(runner, row, call_of(args, Phase::kPrefill));
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], x[i] + bias[i % 37]) << row.name;
  });
}

TEST(EveryVariant, ScaleScales) {
  Random random(27);
  Runner runner(2);
  const std::vector<float> x = random.floats(3 * 37);
  for_each_row(Op::kScale, [&](const Variant& row) {
    std::vector<float> out = x;
    const ScaleArgs args{out.data(), 3, 37, 25.25F};
    runner.run(row, args);
    expect_stamped(runner, row, call_of(args, Phase::kPrefill));
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], x[i] * 25.25F) << row.name;
  });
}

TEST(EveryVariant, AddAdds) {
  Random random(6);
  Runner runner(2);
  const std::vector<float> x = random.floats(3 * 37);
  const std::vector<float> y = random.floats(3 * 37);
  for_each_row(Op::kAdd, [&](const Variant& row) {
    std::vector<float> out = x;  // in place
    const AddArgs args{out.data(), y.data(), out.data(), 3, 37};
    runner.run(row, args);
    expect_stamped(runner, row, call_of(args, Phase::kPrefill));
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], x[i] + y[i]) << row.name;
  });
}

TEST(EveryVariant, RopeMatchesFloat64) {
  Random random(7);
  Runner runner(2);
  const int64_t rows = 4, heads = 3;
  for (const int64_t head_dim : {2, 8, 64, 80}) {
    for (const int64_t dims : {head_dim, head_dim / 4 * 2}) {
      for (const RopePairing pairing : {RopePairing::kHalf, RopePairing::kAdjacent}) {
        const std::vector<float> x = random.floats(rows * heads * head_dim);
        std::vector<float> expected = x;
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t i = 0; i < dims / 2; ++i) {
            const double angle =
                static_cast<double>(1021 + r) *
                std::pow(1e5, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
            const bool half = pairing == RopePairing::kHalf;
            const int64_t a = half ? i : 2 * i;
            const int64_t b = half ? i + dims / 2 : 2 * i + 1;
            for (int64_t h = 0; h < heads; ++h) {
              const int64_t at = (r * heads + h) * head_dim;
              const double xa = x[at + a], xb = x[at + b];
              expected[at + a] = static_cast<float>(xa * std::cos(angle) - xb * std::sin(angle));
              expected[at + b] = static_cast<float>(xb * std::cos(angle) + xa * std::sin(angle));
            }
          }
        }
        for_each_row(Op::kRope, [&](const Variant& row) {
          std::vector<float> out = x;
          const RopeArgs args{out.data(), rows, heads, head_dim, dims, 1021, 1e5, pairing};
          runner.run(row, args);
          expect_stamped(runner, row, call_of(args, Phase::kPrefill));
          expect_rows_close(out, expected, rows, row);
        });
      }
    }
  }
}

TEST(EveryVariant, AttentionMatchesFloat64) {
  Random random(8);
  Runner runner(2);
  struct Shape {
    int64_t heads, kv_heads, head_dim, first, rows;
  };
  for (const Shape& s : {Shape{1, 1, 1, 0, 1}, Shape{9, 3, 64, 0, 7}, Shape{9, 3, 64, 130, 5},
                         Shape{4, 4, 20, 63, 2}, Shape{6, 2, 37, 255, 18}, Shape{8, 1, 128, 40, 1},
                         Shape{16, 2, 80, 511, 3}}) {
    const int64_t capacity = s.first + s.rows + 3;
    const int64_t q_size = s.rows * s.heads * s.head_dim;
    const int64_t kv_size = s.rows * s.kv_heads * s.head_dim;
    const std::vector<float> q = random.floats(q_size), k = random.floats(kv_size),
                             v = random.floats(kv_size);
    const std::vector<float> past_k = random.floats(s.kv_heads * capacity * s.head_dim);
    const std::vector<float> past_v = random.floats(s.kv_heads * capacity * s.head_dim);
    const float scale = 1 / std::sqrt(static_cast<float>(s.head_dim));

    std::vector<float> cache_k = past_k, cache_v = past_v;
    for (int64_t r = 0; r < s.rows; ++r) {
      for (int64_t h = 0; h < s.kv_heads; ++h) {
        for (int64_t i = 0; i < s.head_dim; ++i) {
          const int64_t at = (h * capacity + s.first + r) * s.head_dim + i;
          cache_k[at] = k[(r * s.kv_heads + h) * s.head_dim + i];
          cache_v[at] = v[(r * s.kv_heads + h) * s.head_dim + i];
        }
      }
    }
    std::vector<float> expected(static_cast<size_t>(q_size));
    for (int64_t r = 0; r < s.rows; ++r) {
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t positions = s.first + r + 1;
        const float* keys = cache_k.data() + h / (s.heads / s.kv_heads) * capacity * s.head_dim;
        const float* values = cache_v.data() + h / (s.heads / s.kv_heads) * capacity * s.head_dim;
        const int64_t at = (r * s.heads + h) * s.head_dim;
        std::vector<double> scores(static_cast<size_t>(positions));
        double largest = -INFINITY, sum = 0;
        for (int64_t p = 0; p < positions; ++p) {
          for (int64_t i = 0; i < s.head_dim; ++i) {
            scores[p] += static_cast<double>(q[at + i]) * keys[p * s.head_dim + i];
          }
          scores[p] *= static_cast<double>(scale);
          largest = std::max(largest, scores[p]);
        }
        for (double& score : scores) sum += score = std::exp(score - largest);
        for (int64_t i = 0; i < s.head_dim; ++i) {
          double out = 0;
          for (int64_t p = 0; p < positions; ++p) out += scores[p] * values[p * s.head_dim + i];
          expected[at + i] = static_cast<float>(out / sum);
        }
      }
    }
    for_each_row(Op::kAttention, [&](const Variant& row) {
      std::vector<float> out(expected.size(), std::nanf(""));
      std::vector<float> got_k = past_k, got_v = past_v;
      const AttentionArgs args{q.data(),    k.data(),   v.data(), got_k.data(), got_v.data(),
                               DType::kF32, out.data(), s.rows,   s.heads,      s.kv_heads,
                               s.head_dim,  capacity,   s.first,  scale};
      runner.run(row, args);
      expect_stamped(runner, row, call_of(args, Phase::kPrefill));
      EXPECT_EQ(got_k, cache_k) << row.name;
      EXPECT_EQ(got_v, cache_v) << row.name;
      expect_rows_close(out, expected, s.rows, row);
    });
  }
}

// A window is attention over a cache that has nothing before it: against float64, from any row on,
// with windows shorter, equal to and longer than a block of keys.
TEST(EveryVariant, WindowAttentionMatchesFloat64) {
  constexpr int64_t kRows = 150, kHeads = 4, kKvHeads = 2, kDim = 20;
  Random random(28);
  Runner runner(2);
  const std::vector<float> q = random.floats(kRows * kHeads * kDim, 0.3F);
  const std::vector<float> k = random.floats(kRows * kKvHeads * kDim, 0.3F);
  const std::vector<float> v = random.floats(kRows * kKvHeads * kDim);
  for (const int64_t window : {1, 7, 64, 100, 1000}) {
    std::vector<float> expected(q.size());
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t h = 0; h < kHeads; ++h) {
        const int64_t kv = h / (kHeads / kKvHeads);
        std::vector<double> out(kDim);
        double sum = 0;
        for (int64_t p = std::max(int64_t{0}, r - window + 1); p <= r; ++p) {
          double score = 0;
          for (int64_t i = 0; i < kDim; ++i) {
            score += static_cast<double>(q[(r * kHeads + h) * kDim + i]) *
                     static_cast<double>(k[(p * kKvHeads + kv) * kDim + i]);
          }
          const double weight = std::exp(score * 0.25);
          sum += weight;
          for (int64_t i = 0; i < kDim; ++i) {
            out[i] += weight * static_cast<double>(v[(p * kKvHeads + kv) * kDim + i]);
          }
        }
        for (int64_t i = 0; i < kDim; ++i) {
          expected[(r * kHeads + h) * kDim + i] = static_cast<float>(out[i] / sum);
        }
      }
    }
    for_each_row(Op::kWindowAttention, [&](const Variant& row) {
      std::vector<float> out(expected.size(), std::nanf(""));
      std::vector<float> cache_k(k.size()), cache_v(k.size());
      const AttentionArgs args{q.data(),    k.data(),   v.data(), cache_k.data(), cache_v.data(),
                               DType::kF32, out.data(), kRows,    kHeads,         kKvHeads,
                               kDim,        kRows,      0,        0.25F,          window};
      runner.run(row, args);
      expect_stamped(runner, row, call_of(args, Phase::kPrefill));
      expect_rows_close(out, expected, kRows, row);
    });
  }
}

}  // namespace
}  // namespace reckon::kernels
