// Panels hold the weights of their rows: read back by what panel_blocks.h says of them.
#include "kernels/panels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/cpu/panel_blocks.h"
#include "tensor/dtype.h"
#include "tensor/test_blocks.h"

namespace reckon::kernels {
namespace {

using namespace cpu;

int nibble(int byte, bool high) {
  return high ? byte >> 4 : byte & 15;
}

// Element e of row j of one block.
float weight(const PanelQ4_0& p, int j, int e) {
  const int code = nibble(p.codes[e % 16 / 4][j][e % 4], e >= 16);
  return half_to_float(p.scales[j]) * static_cast<float>(code - 8);
}

float weight(const PanelQ4_1& p, int j, int e) {
  const int code = nibble(p.codes[e % 16 / 4][j][e % 4], e >= 16);
  return half_to_float(p.scales[j]) * static_cast<float>(code) + half_to_float(p.minima[j]);
}

float weight(const PanelQ8_0& p, int j, int e) {
  return half_to_float(p.scales[j]) * static_cast<float>(p.codes[e / 4][j][e % 4]);
}

float weight(const PanelQ4_K& p, int j, int e) {
  const int group = e / 32;
  const int code = nibble(p.codes[group / 2][e % 32 / 4][j][e % 4], group % 2 == 1);
  const float scale = half_to_float(p.scales[j]) * static_cast<float>(p.part_scales[group][j]);
  const float minimum = half_to_float(p.minima[j]) * static_cast<float>(p.part_minima[group][j]);
  return scale * static_cast<float>(code) - minimum;
}

float weight(const PanelQ6_K& p, int j, int e) {
  const int group = e / 32;
  const int low = nibble(p.low[group / 2][e % 32 / 4][j][e % 4], group % 2 == 1);
  const int high = p.high[group / 4][e % 32 / 4][j][e % 4] >> (group % 4 * 2) & 3;
  const float scale = half_to_float(p.scales[j]) * static_cast<float>(p.part_scales[e / 16][j]);
  return scale * static_cast<float>((low | high << 4) - 32);
}

float weight(const PanelP4& p, int j, int e) {
  const int code = nibble(p.codes[e % 32 / 4][j][e % 4], e >= 32);
  return half_to_float(p.scales[j]) * static_cast<float>(code) + half_to_float(p.minima[j]);
}

float weight(const PanelP8& p, int j, int e) {
  return half_to_float(p.scales[j]) * static_cast<float>(p.codes[e / 4][j][e % 4]);
}

template <typename Panel>
void expect_same_weights(DType type, int64_t n, int64_t k) {
  const std::vector<uint8_t> rows = RandomBlocks(3).rows(type, n, k);
  std::vector<uint8_t> bytes(panel_bytes(type, n, k), 0xff);
  lay_out_panels(type, rows.data(), n, k, bytes.data());
  std::vector<float> expected(static_cast<size_t>(k));
  const int64_t block = block_elements(type);
  for (int64_t j = 0; j < (n + 15) / 16 * 16; ++j) {
    std::fill(expected.begin(), expected.end(), 0.0F);
    if (j < n) dequantize_row(type, rows.data() + j * row_bytes(type, k), k, expected.data());
    for (int64_t e = 0; e < k; ++e) {
      Panel panel;
      const int64_t at = j / 16 * (k / block) + e / block;
      std::memcpy(&panel, bytes.data() + at * static_cast<int64_t>(sizeof panel), sizeof panel);
      ASSERT_EQ(weight(panel, static_cast<int>(j % 16), static_cast<int>(e % block)),
                expected[static_cast<size_t>(e)])
          << dtype_name(type) << " row " << j << " element " << e;
    }
  }
}

TEST(Panels, HoldTheWeightsOfTheirRows) {
  for (const int64_t n : {1, 16, 37}) {
    expect_same_weights<PanelQ4_0>(DType::kQ4_0, n, 96);
    expect_same_weights<PanelQ4_1>(DType::kQ4_1, n, 96);
    expect_same_weights<PanelQ8_0>(DType::kQ8_0, n, 96);
    expect_same_weights<PanelP4>(DType::kP4, n, 192);
    expect_same_weights<PanelP8>(DType::kP8, n, 192);
    expect_same_weights<PanelQ4_K>(DType::kQ4_K, n, 512);
    expect_same_weights<PanelQ6_K>(DType::kQ6_K, n, 512);
  }
}

TEST(Panels, TakeAboutTheBytesOfTheRows) {
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kP4, DType::kP8,
                           DType::kQ4_K, DType::kQ6_K}) {
    ASSERT_TRUE(has_panels(type));
    const auto rows = static_cast<uint64_t>(64 * row_bytes(type, 512));
    EXPECT_GE(panel_bytes(type, 64, 512), rows) << dtype_name(type);
    EXPECT_LE(panel_bytes(type, 64, 512), rows * 103 / 100) << dtype_name(type);
    EXPECT_EQ(panel_bytes(type, 49, 512), panel_bytes(type, 64, 512));
  }
  EXPECT_FALSE(has_panels(DType::kF16));
}

}  // namespace
}  // namespace reckon::kernels
