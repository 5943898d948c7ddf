#include "tensor/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace reckon {
namespace {

constexpr DType kPacked[] = {DType::kP4, DType::kP8};
constexpr int64_t kLengths[] = {1, 16, 31, 33, 48, 63, 64, 65, 127, 576, 2880, 10944};

std::vector<float> normal_row(int64_t k, float deviation, float mean, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> row(static_cast<size_t>(k));
  for (float& value : row) value = normal(random);
  for (size_t i = 13; i < row.size(); i += 131) row[i] *= 8;
  return row;
}

// Packs into a buffer of exactly row_bytes between guards, at an odd address.
std::vector<uint8_t> pack(DType type, const std::vector<float>& row) {
  const auto k = static_cast<int64_t>(row.size());
  const auto bytes = static_cast<size_t>(row_bytes(type, k));
  std::vector<uint8_t> memory(bytes + 2, 0xa5);
  EXPECT_TRUE(quantise_row(type, row.data(), k, memory.data() + 1));
  EXPECT_EQ(memory.front(), 0xa5);
  EXPECT_EQ(memory.back(), 0xa5);
  return {memory.begin() + 1, memory.end() - 1};
}

std::vector<float> unpack(DType type, const std::vector<uint8_t>& packed, int64_t k) {
  std::vector<float> row(static_cast<size_t>(k) + 1, 77.0F);
  dequantize_row(type, packed.data(), k, row.data());
  EXPECT_EQ(row.back(), 77.0F);  // padding is not written
  row.pop_back();
  return row;
}

std::vector<float> round_trip(DType type, const std::vector<float>& row) {
  return unpack(type, pack(type, row), static_cast<int64_t>(row.size()));
}

float scale_at(const std::vector<uint8_t>& packed, size_t block_bytes, size_t group) {
  uint16_t scale;
  std::memcpy(&scale, packed.data() + group * block_bytes, sizeof scale);
  return half_to_float(scale);
}

TEST(Packed, RowsArePaddedToWholeGroups) {
  EXPECT_EQ(row_bytes(DType::kP4, 64), 36);
  EXPECT_EQ(row_bytes(DType::kP4, 1), 36);
  EXPECT_EQ(row_bytes(DType::kP4, 65), 72);
  EXPECT_EQ(row_bytes(DType::kP8, 48), 66);
  EXPECT_EQ(row_bytes(DType::kP8, 2880), 45 * 66);
  EXPECT_EQ(row_bytes(DType::kP8, 0), 0);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(pads_rows(type), type == DType::kP4 || type == DType::kP8);
    EXPECT_EQ(can_quantise_to(type), pads_rows(type));
  }
  float row[1] = {};
  EXPECT_DEATH((void)quantise_row(DType::kQ4_1, row, 1, row), "CHECK");
}

TEST(Packed, CodesStandWhereTheLayoutSays) {
  BlockP4 p4{float_to_half(2), float_to_half(-3), {}};
  BlockP8 p8{float_to_half(0.5F), {}};
  for (int i = 0; i < 32; ++i) p4.codes[i] = static_cast<uint8_t>(i % 16 | (15 - i % 16) << 4);
  for (int i = 0; i < 64; ++i) p8.codes[i] = static_cast<int8_t>(i * 4 - 127);
  float out[64];
  dequantize_row(DType::kP4, &p4, 64, out);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], static_cast<float>(2 * (i % 16) - 3));
    EXPECT_EQ(out[i + 32], static_cast<float>(2 * (15 - i % 16) - 3));
  }
  dequantize_row(DType::kP8, &p8, 64, out);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], 0.5F * static_cast<float>(i * 4 - 127));
}

// The bound that the header promises, from the group's own values.
TEST(Packed, P4ErrorStaysUnderHalfTheCoveringStep) {
  uint64_t seed = 1;
  for (const int64_t k : kLengths) {
    for (const auto& [deviation, mean] :
         {std::pair{0.02F, 0.0F}, {1.0F, 0.0F}, {0.01F, 5.0F}, {1000.0F, 10.0F}, {1e-6F, 0.0F}}) {
      const std::vector<float> row = normal_row(k, deviation, mean, seed++);
      const std::vector<float> got = round_trip(DType::kP4, row);
      for (size_t first = 0; first < row.size(); first += 64) {
        const size_t end = std::min(first + 64, row.size());
        const auto [low, high] = std::minmax_element(row.begin() + static_cast<int64_t>(first),
                                                     row.begin() + static_cast<int64_t>(end));
        // One unit in the last place of a half, at most.
        const double unit = std::max(std::abs(static_cast<double>(*low)) / 1024, 0x1p-24);
        const double covering = (static_cast<double>(*high) - *low + unit) / 15;
        const double step = covering + std::max(covering / 1024, 0x1p-24);
        double squares = 0;
        for (size_t i = first; i < end; ++i) {
          squares += std::pow(static_cast<double>(got[i]) - row[i], 2);
        }
        EXPECT_LE(std::sqrt(squares / static_cast<double>(end - first)), step / 2 * 1.00001)
            << k << " " << deviation << " group " << first / 64;
      }
    }
  }
}

TEST(Packed, P4BeatsTheCoveringGridOnRealisticWeights) {
  const std::vector<float> row = normal_row(10944, 0.02F, 0, 99);
  const std::vector<float> got = round_trip(DType::kP4, row);
  double squares = 0, covering = 0;
  for (size_t first = 0; first < row.size(); first += 64) {
    const auto group = row.begin() + static_cast<int64_t>(first);
    const auto [low, high] = std::minmax_element(group, group + 64);
    const double step = static_cast<double>(*high - *low) / 15;
    for (size_t i = first; i < first + 64; ++i) {
      const double code = std::round((static_cast<double>(row[i]) - *low) / step);
      covering += std::pow(*low + code * step - row[i], 2);
      squares += std::pow(static_cast<double>(got[i]) - row[i], 2);
    }
  }
  EXPECT_LT(squares, 0.97 * covering);
}

TEST(Packed, P8ErrorStaysUnderHalfAScale) {
  uint64_t seed = 1000;
  for (const int64_t k : kLengths) {
    for (const float deviation : {0.02F, 1.0F, 200000.0F, 1e-6F, 1e-12F, 1e-40F}) {
      const std::vector<float> row = normal_row(k, deviation, 0, seed++);
      const std::vector<uint8_t> packed = pack(DType::kP8, row);
      const std::vector<float> got = unpack(DType::kP8, packed, k);
      for (size_t i = 0; i < row.size(); ++i) {
        const float scale = scale_at(packed, sizeof(BlockP8), i / 64);
        EXPECT_LE(std::abs(got[i] - row[i]), scale * 0.5001F) << k << " " << deviation;
      }
    }
  }
}

TEST(Packed, ConstantGroupsAreExact) {
  for (const DType type : kPacked) {
    for (const int64_t k : {1, 48, 64, 65}) {
      for (const float value : {0.0F, -0.0F, 1.0F, -0.375F, 2048.0F}) {
        if (type == DType::kP8 && value != 0) continue;
        const std::vector<float> row(static_cast<size_t>(k), value);
        EXPECT_EQ(round_trip(type, row), row) << dtype_name(type) << " " << value;
      }
    }
  }
  // 127 * 2^-6 is a half times the largest code.
  const std::vector<float> row(70, 127 * 0x1p-6F);
  EXPECT_EQ(round_trip(DType::kP8, row), row);
}

TEST(Packed, WhatTheGridHoldsIsExact) {
  std::vector<float> p4, p8;
  for (int i = 0; i < 96; ++i) p4.push_back(0.25F * static_cast<float>(i % 16) - 2);
  for (int i = -127; i <= 127; ++i) p8.push_back(0x1p-7F * static_cast<float>(i));
  p8[0] = p8[64] = p8[128] = p8[192] = -127 * 0x1p-7F;
  EXPECT_EQ(round_trip(DType::kP4, p4), p4);
  EXPECT_EQ(round_trip(DType::kP8, p8), p8);
}

TEST(Packed, PaddingHasCodesOfZero) {
  for (const int64_t k : {1, 16, 31, 33, 48, 63, 65}) {
    std::vector<float> row = normal_row(k, 1, 3, 5);
    const std::vector<uint8_t> p4 = pack(DType::kP4, row);
    const std::vector<uint8_t> p8 = pack(DType::kP8, row);
    const auto groups = static_cast<size_t>((k + 63) / 64);
    BlockP4 last4;
    BlockP8 last8;
    std::memcpy(&last4, p4.data() + (groups - 1) * sizeof last4, sizeof last4);
    std::memcpy(&last8, p8.data() + (groups - 1) * sizeof last8, sizeof last8);
    for (int64_t i = k - static_cast<int64_t>(groups - 1) * 64; i < 64; ++i) {
      EXPECT_EQ(i < 32 ? last4.codes[i] & 15 : last4.codes[i - 32] >> 4, 0);
      EXPECT_EQ(last8.codes[i], 0);
    }
  }
}

TEST(Packed, RefusesWhatHalvesCannotHold) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const DType type : kPacked) {
    std::vector<uint8_t> out(static_cast<size_t>(row_bytes(type, 70)));
    const float largest = type == DType::kP4 ? 65504.0F : 127 * 65504.0F;
    for (const int64_t at : {0, 63, 64, 69}) {
      std::vector<float> row(70, 1.0F);
      float& value = row[static_cast<size_t>(at)];
      for (const float bad : {kInfinity, -kInfinity, std::nanf(""), largest * 1.0001F,
                              -largest * 1.0001F, std::numeric_limits<float>::max()}) {
        value = bad;
        EXPECT_FALSE(quantise_row(type, row.data(), 70, out.data())) << dtype_name(type) << bad;
      }
      for (const float good : {largest, -largest}) {
        value = good;
        const std::vector<float> got = round_trip(type, row);
        for (const float w : got) EXPECT_TRUE(std::isfinite(w));
        EXPECT_NEAR(got[static_cast<size_t>(at)] / good, 1, 1e-3);
      }
    }
  }
}

TEST(Packed, DenormalsAndTinyRangesStayClose) {
  for (const DType type : kPacked) {
    for (const float size : {1e-5F, 1e-7F, 1e-10F, 1e-40F}) {
      const std::vector<float> row = normal_row(64, size, 0, 7);
      const std::vector<float> got = round_trip(type, row);
      for (size_t i = 0; i < row.size(); ++i) {
        EXPECT_LE(std::abs(got[i] - row[i]), 0x1p-24F + 2 * size) << dtype_name(type) << size;
      }
    }
  }
}

TEST(Packed, BytesDependOnTheRowAlone) {
  for (const DType type : kPacked) {
    const std::vector<float> row = normal_row(2880, 0.02F, 0, 11);
    const std::vector<uint8_t> whole = pack(type, row);
    EXPECT_EQ(pack(type, row), whole);
    // A group does not see its neighbours.
    const std::vector<float> group(row.begin() + 640, row.begin() + 704);
    const auto bytes = static_cast<int64_t>(block_bytes(type));
    EXPECT_EQ(pack(type, group),
              std::vector<uint8_t>(whole.begin() + 10 * bytes, whole.begin() + 11 * bytes));
  }
}

}  // namespace
}  // namespace reckon
