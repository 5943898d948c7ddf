#include "kernels/panels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "base/check.h"
#include "kernels/cpu/panel_blocks.h"
#include "tensor/dtype.h"
#include "tensor/superblocks.h"

namespace reckon::kernels {
namespace {

using cpu::PanelP4;
using cpu::PanelP8;
using cpu::PanelQ4_0;
using cpu::PanelQ4_1;
using cpu::PanelQ4_K;
using cpu::PanelQ6_K;
using cpu::PanelQ8_0;

// The same block of 16 rows; a row that is not there is all zeros.
struct BlockRows {
  const char* at[kPanelHeight];
};

template <typename Value>
Value load(const char* p) {
  Value value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

void copy_halves(const BlockRows& rows, size_t offset, uint16_t (&out)[kPanelHeight]) {
  for (int64_t j = 0; j < kPanelHeight; ++j) out[j] = load<uint16_t>(rows.at[j] + offset);
}

using Words = uint32_t __attribute__((vector_size(16)));

// 16 bytes of each row: word i of row j becomes words[i][j]. Rows are transposed four at a time in
// registers; word by word this is what a load waits for.
void move_4_words(const BlockRows& rows, size_t offset, uint8_t (*words)[kPanelHeight][4]) {
  for (int64_t j = 0; j < kPanelHeight; j += 4) {
    const auto a = load<Words>(rows.at[j] + offset), b = load<Words>(rows.at[j + 1] + offset);
    const auto c = load<Words>(rows.at[j + 2] + offset), d = load<Words>(rows.at[j + 3] + offset);
    const Words ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Words ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Words cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Words cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const Words moved[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                            __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                            __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                            __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; ++i) std::memcpy(words[i][j], &moved[i], sizeof moved[i]);
  }
}

template <size_t kWords>
void move_words(const BlockRows& rows, size_t offset, uint8_t (*words)[kPanelHeight][4]) {
  for (size_t i = 0; i < kWords; i += 4) move_4_words(rows, offset + 4 * i, words + i);
}

void place(const BlockRows& rows, PanelQ4_0& panel) {
  copy_halves(rows, offsetof(BlockQ4_0, scale), panel.scales);
  move_words<4>(rows, offsetof(BlockQ4_0, codes), panel.codes);
}

void place(const BlockRows& rows, PanelQ4_1& panel) {
  copy_halves(rows, offsetof(BlockQ4_1, scale), panel.scales);
  copy_halves(rows, offsetof(BlockQ4_1, minimum), panel.minima);
  move_words<4>(rows, offsetof(BlockQ4_1, codes), panel.codes);
}

// Byte b of lane j of word i is code 4i + b, signed as it is in the row.
template <size_t kWords>
void move_bytes(const BlockRows& rows, size_t offset, int8_t (*words)[kPanelHeight][4]) {
  move_words<kWords>(rows, offset, reinterpret_cast<uint8_t(*)[kPanelHeight][4]>(words));
}

void place(const BlockRows& rows, PanelQ8_0& panel) {
  copy_halves(rows, offsetof(BlockQ8_0, scale), panel.scales);
  move_bytes<8>(rows, offsetof(BlockQ8_0, codes), panel.codes);
}

void place(const BlockRows& rows, PanelP4& panel) {
  copy_halves(rows, offsetof(BlockP4, scale), panel.scales);
  copy_halves(rows, offsetof(BlockP4, minimum), panel.minima);
  move_words<8>(rows, offsetof(BlockP4, codes), panel.codes);
}

void place(const BlockRows& rows, PanelP8& panel) {
  copy_halves(rows, offsetof(BlockP8, scale), panel.scales);
  move_bytes<16>(rows, offsetof(BlockP8, codes), panel.codes);
}

void place(const BlockRows& rows, PanelQ4_K& panel) {
  copy_halves(rows, offsetof(BlockQ4_K, scale), panel.scales);
  copy_halves(rows, offsetof(BlockQ4_K, minimum), panel.minima);
  for (int64_t j = 0; j < kPanelHeight; ++j) {
    uint8_t parts[12];
    std::memcpy(parts, rows.at[j] + offsetof(BlockQ4_K, parts), sizeof parts);
    for (int part = 0; part < 8; ++part) {
      const SixBitPart values = six_bit_part(parts, part);
      panel.part_scales[part][j] = static_cast<uint8_t>(values.scale);
      panel.part_minima[part][j] = static_cast<uint8_t>(values.minimum);
    }
  }
  for (size_t c = 0; c < 4; ++c) {
    move_words<8>(rows, offsetof(BlockQ4_K, codes) + 32 * c, panel.codes[c]);
  }
}

// In a row, the low nibbles of bytes 64h ... 64h + 63 are groups 4h and 4h + 1, the high ones are
// groups 4h + 2 and 4h + 3.
void place_row(const char* row, int64_t j, PanelQ6_K& panel) {
  constexpr uint32_t kNibbles = 0x0f0f0f0f;
  panel.scales[j] = load<uint16_t>(row + offsetof(BlockQ6_K, scale));
  for (int part = 0; part < 16; ++part) {
    panel.part_scales[part][j] = load<int8_t>(row + offsetof(BlockQ6_K, parts) + part);
  }
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 8; ++i) {
      const char* low = row + offsetof(BlockQ6_K, low) + 64 * h + 4 * i;
      const auto a = load<uint32_t>(low);
      const auto b = load<uint32_t>(low + 32);
      const uint32_t first = (a & kNibbles) | (b & kNibbles) << 4;
      const uint32_t second = (a >> 4 & kNibbles) | (b & ~kNibbles);
      std::memcpy(panel.low[2 * h][i][j], &first, 4);
      std::memcpy(panel.low[2 * h + 1][i][j], &second, 4);
    }
  }
}

void place(const BlockRows& rows, PanelQ6_K& panel) {
  for (int64_t j = 0; j < kPanelHeight; ++j) place_row(rows.at[j], j, panel);
  for (size_t h = 0; h < 2; ++h) {
    move_words<8>(rows, offsetof(BlockQ6_K, high) + 32 * h, panel.high[h]);
  }
}

// Panel by panel, block by block: 16 streams are read, one is written.
template <typename Block, typename Panel>
void lay_out(const void* rows, int64_t count, int64_t blocks, void* out) {
  static constexpr char kZeros[sizeof(Block)] = {};
  const auto* from = static_cast<const char*>(rows);
  auto* to = static_cast<char*>(out);
  const auto block_bytes = static_cast<int64_t>(sizeof(Block));
  for (int64_t first = 0; first < count; first += kPanelHeight) {
    const int64_t taken = std::min(kPanelHeight, count - first);
    const char* panel_rows = from + first * blocks * block_bytes;
    for (int64_t b = 0; b < blocks; ++b, to += sizeof(Panel)) {
      BlockRows at;
      for (int64_t j = 0; j < kPanelHeight; ++j) {
        at.at[j] = j < taken ? panel_rows + (j * blocks + b) * block_bytes : kZeros;
      }
      place(at, *new (to) Panel);
    }
  }
}

struct Layout {
  DType type;
  uint64_t panel_block_bytes;
  void (*lay_out)(const void* rows, int64_t count, int64_t blocks, void* out);
};

constexpr Layout kLayouts[] = {
    {DType::kQ4_0, sizeof(PanelQ4_0), lay_out<BlockQ4_0, PanelQ4_0>},
    {DType::kQ4_1, sizeof(PanelQ4_1), lay_out<BlockQ4_1, PanelQ4_1>},
    {DType::kQ8_0, sizeof(PanelQ8_0), lay_out<BlockQ8_0, PanelQ8_0>},
    {DType::kP4, sizeof(PanelP4), lay_out<BlockP4, PanelP4>},
    {DType::kP8, sizeof(PanelP8), lay_out<BlockP8, PanelP8>},
    {DType::kQ4_K, sizeof(PanelQ4_K), lay_out<BlockQ4_K, PanelQ4_K>},
    {DType::kQ6_K, sizeof(PanelQ6_K), lay_out<BlockQ6_K, PanelQ6_K>},
};

const Layout* find_layout(DType type) {
  const auto* found = std::ranges::find(kLayouts, type, &Layout::type);
  return found == std::end(kLayouts) ? nullptr : found;
}

const Layout& layout_of(DType type) {
  const Layout* found = find_layout(type);
  RECKON_CHECK(found != nullptr);
  return *found;
}

int64_t blocks_of(DType type, int64_t k) {
  RECKON_CHECK(k % block_elements(type) == 0);
  return k / block_elements(type);
}

}  // namespace

bool has_panels(DType type) {
  return find_layout(type) != nullptr;
}

uint64_t panel_bytes(DType type, int64_t n, int64_t k) {
  const auto panels = static_cast<uint64_t>((n + kPanelHeight - 1) / kPanelHeight);
  return panels * static_cast<uint64_t>(blocks_of(type, k)) * layout_of(type).panel_block_bytes;
}

void lay_out_panels(DType type, const void* rows, int64_t count, int64_t k, void* out) {
  layout_of(type).lay_out(rows, count, blocks_of(type, k), out);
}

}  // namespace reckon::kernels
