#include "tensor/random_rows.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace reckon {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kP4, DType::kP8};

std::vector<uint8_t> rows_of(const RowSource& source, int64_t first, int64_t count, int64_t k,
                             DType type) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count * row_bytes(type, k)));
  const Status status = source.rows(first, count, type, bytes.data());
  EXPECT_TRUE(status.ok());
  return bytes;
}

std::vector<float> values_of(const RowSource& source, int64_t n, int64_t k, DType type) {
  const std::vector<uint8_t> bytes = rows_of(source, 0, n, k, type);
  std::vector<float> values(static_cast<size_t>(n * k));
  for (int64_t j = 0; j < n; ++j) {
    dequantize_row(type, bytes.data() + j * row_bytes(type, k), k, values.data() + j * k);
  }
  return values;
}

TEST(RandomRows, DoNotDependOnTheStripsTheyAreAskedIn) {
  const RandomRows source(7, "some.weight", RandomKind::kMatrix, 9, 113);
  for (const DType type : kTypes) {
    const std::vector<uint8_t> whole = rows_of(source, 0, 9, 113, type);
    std::vector<uint8_t> strips = rows_of(source, 0, 4, 113, type);
    for (const int64_t row : {4, 5, 6, 7, 8}) {
      const std::vector<uint8_t> one = rows_of(source, row, 1, 113, type);
      strips.insert(strips.end(), one.begin(), one.end());
    }
    EXPECT_EQ(whole, strips);
  }
}

TEST(RandomRows, DependOnSeedNameAndRow) {
  const RandomRows one(7, "a", RandomKind::kMatrix, 2, 64);
  for (const DType type : kTypes) {
    const std::vector<uint8_t> rows = rows_of(one, 0, 1, 64, type);
    EXPECT_EQ(rows, rows_of(RandomRows(7, "a", RandomKind::kMatrix, 3, 64), 0, 1, 64, type));
    EXPECT_NE(rows, rows_of(one, 1, 1, 64, type));
    EXPECT_NE(rows, rows_of(RandomRows(8, "a", RandomKind::kMatrix, 2, 64), 0, 1, 64, type));
    EXPECT_NE(rows, rows_of(RandomRows(7, "b", RandomKind::kMatrix, 2, 64), 0, 1, 64, type));
  }
}

// What a seed gives must not change from version to version: results name it. The bytes come from
// a second implementation, in Python.
TEST(RandomRows, AreTheSameForEver) {
  const RandomRows source(0, "model.norm.weight", RandomKind::kMatrix, 1, 4);
  EXPECT_EQ(rows_of(source, 0, 1, 4, DType::kBF16),
            (std::vector<uint8_t>{0x67, 0x3f, 0x49, 0x3f, 0x49, 0xbe, 0xdc, 0x3e}));
  std::vector<uint8_t> p4 = rows_of(source, 0, 1, 4, DType::kP4);
  p4.resize(8);
  EXPECT_EQ(p4, (std::vector<uint8_t>{0xc0, 0x2d, 0x64, 0xb9, 0, 6, 6, 8}));
}

TEST(RandomRows, HaveMeanZeroAndTheDeviationOfTheirWidth) {
  constexpr int64_t kN = 64, kK = 1000;
  const RandomRows source(1, "w", RandomKind::kMatrix, kN, kK);
  for (const DType type : kTypes) {
    double sum = 0, squares = 0;
    for (const float value : values_of(source, kN, kK, type)) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
    const double scaled_mean = sum / (kN * kK) * std::sqrt(kK);
    EXPECT_NEAR(scaled_mean, 0, 0.02) << dtype_name(type);  // five standard errors
    EXPECT_NEAR(squares / kN, 1, 0.05) << dtype_name(type);
  }
}

TEST(RandomRows, FactorsOfRowsScaleTheirDeviation) {
  constexpr int64_t kK = 4096;
  const RandomRows source(1, "w", RandomKind::kMatrix, 3, kK, {1.0F, 0.5F, 4.0F});
  const RandomRows plain(1, "w", RandomKind::kMatrix, 3, kK);
  for (const DType type : kTypes) {
    const std::vector<float> values = values_of(source, 3, kK, type);
    for (const int64_t row : {0, 1, 2}) {
      double squares = 0;
      for (int64_t i = 0; i < kK; ++i) {
        const double value = values[static_cast<size_t>(row * kK + i)];
        squares += value * value;
      }
      const double factor = std::array{1.0, 0.5, 4.0}[static_cast<size_t>(row)];
      EXPECT_NEAR(std::sqrt(squares), factor, 0.06 * factor) << dtype_name(type) << " " << row;
    }
    EXPECT_EQ(rows_of(source, 0, 1, kK, type), rows_of(plain, 0, 1, kK, type));
  }
}

TEST(RandomRows, ArePlainlyTheSameInEveryPlainType) {
  const RandomRows source(1, "w", RandomKind::kMatrix, 3, 81);
  const std::vector<float> f32 = values_of(source, 3, 81, DType::kF32);
  EXPECT_EQ(f32, values_of(source, 3, 81, DType::kBF16));
  const std::vector<float> f16 = values_of(source, 3, 81, DType::kF16);
  for (size_t i = 0; i < f32.size(); ++i) EXPECT_NEAR(f32[i], f16[i], 1e-6);
}

TEST(RandomRows, KeepPaddingAndTheLowestCodeOut) {
  for (const int64_t k : {1, 31, 33, 65, 127, 8192}) {
    const RandomRows source(3, "w", RandomKind::kMatrix, 1, k);
    const std::vector<uint8_t> p4 = rows_of(source, 0, 1, k, DType::kP4);
    const std::vector<uint8_t> p8 = rows_of(source, 0, 1, k, DType::kP8);
    const auto* blocks4 = reinterpret_cast<const BlockP4*>(p4.data());
    const auto* blocks8 = reinterpret_cast<const BlockP8*>(p8.data());
    const int64_t last = (k - 1) / 64;
    for (int64_t i = k - 64 * last; i < 64; ++i) {
      const uint8_t byte = blocks4[last].codes[i % 32];
      EXPECT_EQ(i < 32 ? byte & 15 : byte >> 4, 0) << k << " " << i;
      EXPECT_EQ(blocks8[last].codes[i], 0) << k << " " << i;
    }
    int zeros = 0;
    for (int64_t i = 0; i < k; ++i) {
      EXPECT_NE(blocks8[i / 64].codes[i % 64], -128);
      zeros += blocks8[i / 64].codes[i % 64] == 0 ? 1 : 0;
    }
    EXPECT_LE(zeros, 10 + k / 64);  // one in 128
  }
}

TEST(RandomRows, OfP4AreCentredToTheBit) {
  const RandomRows source(3, "w", RandomKind::kMatrix, 1, 64 * 64);
  const std::vector<uint8_t> bytes = rows_of(source, 0, 1, 64 * 64, DType::kP4);
  const auto* blocks = reinterpret_cast<const BlockP4*>(bytes.data());
  for (int i = 0; i < 64; ++i) {
    EXPECT_GT(half_to_float(blocks[i].scale), 0);
    EXPECT_EQ(half_to_float(blocks[i].minimum), -7.5F * half_to_float(blocks[i].scale));
  }
}

TEST(RandomRows, OfANormAreNearOneAndNotAllEqual) {
  const RandomRows source(1, "norm", RandomKind::kNorm, 1, 200);
  const std::vector<float> values = values_of(source, 1, 200, DType::kF32);
  int ones = 0;
  for (const float value : values) {
    EXPECT_NEAR(value, 1, 0.1);
    ones += value == 1 ? 1 : 0;
  }
  EXPECT_LT(ones, 100);
}

}  // namespace
}  // namespace reckon
