#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace reckon {
namespace {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(dtype_name(type)), type);
  }
  EXPECT_FALSE(dtype_from_name("q9_9").has_value());
  EXPECT_FALSE(dtype_from_name("").has_value());
}

TEST(DType, RowBytesCountsBlocks) {
  EXPECT_EQ(row_bytes(DType::kF32, 3), 12);
  EXPECT_EQ(row_bytes(DType::kBF16, 576), 1152);
  EXPECT_EQ(row_bytes(DType::kQ8_0, 64), 68);
  EXPECT_EQ(row_bytes(DType::kQ4_1, 576), 360);
  EXPECT_EQ(row_bytes(DType::kQ4_1, 0), 0);
  EXPECT_DEATH((void)row_bytes(DType::kQ4_1, 33), "CHECK");
}

TEST(DType, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      ASSERT_EQ(float_to_half(value), half) << bits;
    }
  }
}

// Between each pair of neighbouring halves: just below the middle, the middle, just above it.
TEST(DType, FloatToHalfRoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = half_to_float(static_cast<uint16_t>(bits));
    const float high = half_to_float(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: one more bit than a half has
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(float_to_half(middle), even) << bits;
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(float_to_half(std::nextafter(middle, 1e30F)), bits + 1);
    ASSERT_EQ(float_to_half(-middle), even | 0x8000U);
  }
}

TEST(DType, FloatToHalfHandlesTheEnds) {
  EXPECT_EQ(float_to_half(65504.0F), 0x7bff);
  EXPECT_EQ(float_to_half(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(float_to_half(-0.0F), 0x8000);
  EXPECT_EQ(float_to_half(0x1p-26F), 0);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::nanf("")))));
}

TEST(DType, Bf16RoundsToNearestEvenAndKeepsNan) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bf16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_bf16(value), bits);
  }
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // tie to even
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  // A NaN whose payload is in the low bits only must not become infinity.
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(DType, DequantizesBlocksAtAnyAlignment) {
  BlockQ8_0 q8{};
  q8.scale = float_to_half(0.5F);
  for (int i = 0; i < 32; ++i) q8.codes[i] = static_cast<int8_t>(i * 8 - 128);
  BlockQ4_1 q4{};
  q4.scale = float_to_half(2.0F);
  q4.minimum = float_to_half(-3.0F);
  for (int i = 0; i < 16; ++i) q4.codes[i] = static_cast<uint8_t>(i | (15 - i) << 4);

  std::vector<char> bytes(1 + sizeof q8);
  std::memcpy(bytes.data() + 1, &q8, sizeof q8);
  float out[32];
  dequantize_row(DType::kQ8_0, bytes.data() + 1, 32, out);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 0.5F * static_cast<float>(i * 8 - 128));

  std::memcpy(bytes.data() + 1, &q4, sizeof q4);
  dequantize_row(DType::kQ4_1, bytes.data() + 1, 32, out);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], static_cast<float>(2 * i - 3));
    EXPECT_EQ(out[i + 16], static_cast<float>(2 * (15 - i) - 3));
  }
}

TEST(DType, DequantizesPlainTypes) {
  const float values[3] = {1.5F, -0.0F, 65504.0F};
  float out[3];
  dequantize_row(DType::kF32, values, 3, out);
  EXPECT_EQ(std::memcmp(out, values, sizeof out), 0);
  const uint16_t halves[2] = {0x3c00, 0x8001};
  dequantize_row(DType::kF16, halves, 2, out);
  EXPECT_EQ(out[0], 1.0F);
  EXPECT_EQ(out[1], -0x1p-24F);
  const uint16_t brains[2] = {0x3f80, 0xc000};
  dequantize_row(DType::kBF16, brains, 2, out);
  EXPECT_EQ(out[0], 1.0F);
  EXPECT_EQ(out[1], -2.0F);
  EXPECT_DEATH(dequantize_row(DType::kI32, values, 3, out), "CHECK");
  EXPECT_DEATH(dequantize_row(DType::kQ8_0, values, 31, out), "CHECK");
}

}  // namespace
}  // namespace reckon
