#include "models/nearest_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "kernels/native_types.h"
#include "tensor/row_source.h"
#include "tensor/test_blocks.h"

namespace reckon::models {
namespace {

bool on_this_cpu(DType type) {
  return kernels::has_matmul(kernels::cpu_backend(), type, 64, 512);
}

TEST(NearestType, WhatHasKernelsStays) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_1, DType::kQ8_0,
                           DType::kP4, DType::kP8}) {
    EXPECT_TRUE(on_this_cpu(type)) << dtype_name(type);
    EXPECT_EQ(nearest_type(type, on_this_cpu), type);
  }
  EXPECT_FALSE(on_this_cpu(DType::kI32));
  EXPECT_EQ(nearest_type(DType::kI32, [](DType) { return true; }), std::nullopt);
  EXPECT_EQ(nearest_type(DType::kQ3_K, [](DType) { return true; }), DType::kQ3_K);
}

TEST(NearestType, FallsBackToHalfPrecision) {
  EXPECT_EQ(nearest_type(DType::kQ6_K, [](DType type) { return type == DType::kF16; }),
            DType::kF16);
  EXPECT_EQ(nearest_type(DType::kQ6_K, [](DType) { return false; }), std::nullopt);
}

// The errors that nearest_type.h gives, rounded up.
TEST(NearestType, LosesNoMoreThanItSays) {
  constexpr int64_t kRows = 64, kColumns = 4096;
  const std::set<DType> native = {DType::kF16, DType::kQ4_1, DType::kQ8_0, DType::kP4, DType::kP8};
  const std::set<DType> lossless = {DType::kQ4_0, DType::kQ5_0, DType::kIQ4_NL, DType::kMXFP4,
                                    DType::kQ3_K};
  RandomBlocks random(7);
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto stored = static_cast<DType>(t);
    if (stored == DType::kI32 || block_elements(stored) == 1) continue;
    const auto kept = nearest_type(stored, [&](DType type) { return native.contains(type); });
    ASSERT_TRUE(kept.has_value()) << dtype_name(stored);
    EXPECT_TRUE(native.contains(*kept));
    EXPECT_NE(*kept, DType::kF16) << dtype_name(stored);
    if (native.contains(stored)) continue;

    const std::vector<uint8_t> bytes = random.rows(stored, kRows, kColumns);
    std::vector<char> out(static_cast<size_t>(kRows * row_bytes(*kept, kColumns)));
    const StoredRows rows({bytes.data(), stored, kRows, kColumns});
    ASSERT_TRUE(rows.rows(0, kRows, *kept, out.data()).ok());
    std::vector<float> expected(kColumns), got(kColumns);
    double squares = 0, norm = 0;
    for (int64_t j = 0; j < kRows; ++j) {
      dequantize_row(stored, bytes.data() + j * row_bytes(stored, kColumns), kColumns,
                     expected.data());
      dequantize_row(*kept, out.data() + j * row_bytes(*kept, kColumns), kColumns, got.data());
      for (size_t i = 0; i < got.size(); ++i) {
        squares += std::pow(static_cast<double>(got[i]) - expected[i], 2);
        norm += std::pow(static_cast<double>(expected[i]), 2);
      }
    }
    const double error = std::sqrt(squares / norm);
    const bool rounded_anew = *kept == DType::kP8;
    EXPECT_LE(error, lossless.contains(stored) ? 0
                     : rounded_anew            ? 5.4e-3
                                               : 3.5e-4)
        << dtype_name(stored) << " as " << dtype_name(*kept);
  }
}

}  // namespace
}  // namespace reckon::models
