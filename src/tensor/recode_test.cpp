#include "tensor/recode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/test_blocks.h"

namespace reckon {
namespace {

struct Case {
  DType from;
  DType to;
  double error;  // the largest root mean square error allowed, of the root mean square weight
};

constexpr Case kCases[] = {
    {DType::kQ4_0, DType::kQ4_1, 0},      {DType::kQ5_0, DType::kQ8_0, 0},
    {DType::kIQ4_NL, DType::kQ8_0, 0},    {DType::kMXFP4, DType::kQ8_0, 0},
    {DType::kQ3_K, DType::kQ8_0, 0},      {DType::kQ4_K, DType::kQ4_1, 5e-4},
    {DType::kIQ4_XS, DType::kQ8_0, 3e-4},
};

std::vector<float> values_of(DType type, const void* row, int64_t k) {
  std::vector<float> values(static_cast<size_t>(k));
  dequantize_row(type, row, k, values.data());
  return values;
}

TEST(Recode, KnowsItsPairs) {
  int pairs = 0;
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int to = 0; to < kDTypeCount; ++to) {
      pairs += can_recode(static_cast<DType>(from), static_cast<DType>(to)) ? 1 : 0;
    }
  }
  EXPECT_EQ(pairs, static_cast<int>(std::size(kCases)));
  char out[64];
  EXPECT_DEATH((void)recode_row(DType::kQ6_K, out, 0, DType::kQ8_0, out), "CHECK");
  EXPECT_DEATH((void)recode_row(DType::kQ3_K, out, 32, DType::kQ8_0, out), "CHECK");
}

TEST(Recode, KeepsTheWeights) {
  constexpr int64_t kElements = 1024 * 256;
  RandomBlocks random(1);
  for (const auto& [from, to, error] : kCases) {
    const std::string name = std::string(dtype_name(from));
    const std::vector<uint8_t> row = random.rows(from, 1, kElements);
    std::vector<uint8_t> out(1 + static_cast<size_t>(row_bytes(to, kElements)));
    ASSERT_TRUE(recode_row(from, row.data(), kElements, to, out.data() + 1)) << name;
    const std::vector<float> expected = values_of(from, row.data(), kElements);
    const std::vector<float> got = values_of(to, out.data() + 1, kElements);
    if (error == 0) {
      EXPECT_EQ(got, expected) << name;
      continue;
    }
    double squares = 0, norm = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      squares += std::pow(static_cast<double>(got[i]) - expected[i], 2);
      norm += std::pow(static_cast<double>(expected[i]), 2);
    }
    const double ratio = std::sqrt(squares / norm);
    RecordProperty(name, std::to_string(ratio));
    EXPECT_LE(ratio, error) << name;
    EXPECT_GT(ratio, 0) << name;
  }
}

// Codes and parts of all zeros and of all ones, and the powers of two that a half holds.
TEST(Recode, KeepsTheExtremes) {
  for (const auto& [from, to, error] : kCases) {
    for (const uint8_t byte : std::vector<uint8_t>{0x00, 0xff, 0x0f, 0xf0}) {
      for (const int exponent : {104, 128, 143}) {
        std::vector<uint8_t> row(static_cast<size_t>(block_bytes(from)), byte);
        const uint16_t scale = float_to_half(exponent == 104 ? 0x1p-10F : 1.5F);
        if (from == DType::kMXFP4) {
          row[0] = static_cast<uint8_t>(exponent);
        } else if (from == DType::kQ3_K) {
          std::memcpy(row.data() + offsetof(BlockQ3_K, scale), &scale, sizeof scale);
        } else {
          std::memcpy(row.data(), &scale, sizeof scale);
          if (from == DType::kQ4_K) std::memcpy(row.data() + 2, &scale, sizeof scale);
        }
        std::vector<uint8_t> out(static_cast<size_t>(row_bytes(to, block_elements(from))));
        ASSERT_TRUE(recode_row(from, row.data(), block_elements(from), to, out.data()));
        EXPECT_EQ(values_of(to, out.data(), block_elements(from)),
                  values_of(from, row.data(), block_elements(from)))
            << dtype_name(from) << " " << int{byte} << " " << exponent;
      }
    }
  }
}

TEST(Recode, RefusesScalesThatAreNoHalves) {
  BlockQ4_0 infinite{};
  infinite.scale = 0x7c00;
  BlockQ4_0 wide{};
  wide.scale = float_to_half(9000);  // times 8 is above 65504
  BlockMXFP4 huge{};
  huge.exponent = 144;
  uint8_t out[34];
  EXPECT_FALSE(recode_row(DType::kQ4_0, &infinite, 32, DType::kQ4_1, out));
  EXPECT_FALSE(recode_row(DType::kQ4_0, &wide, 32, DType::kQ4_1, out));
  EXPECT_FALSE(recode_row(DType::kMXFP4, &huge, 32, DType::kQ8_0, out));
}

}  // namespace
}  // namespace reckon
