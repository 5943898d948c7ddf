#include "kernels/panels.h"

#include <algorithm>
#include <cstring>

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

template <int kWords>
void copy_words(const void* codes, uint8_t (*words)[16][4], int64_t j) {
  const auto* from = static_cast<const uint8_t*>(codes);
  for (int i = 0; i < kWords; ++i) std::memcpy(words[i][j], from + 4 * i, 4);
}

void place(const BlockQ4_0& block, int64_t j, PanelQ4_0& panel) {
  panel.scales[j] = block.scale;
  copy_words<4>(block.codes, panel.codes, j);
}

void place(const BlockQ4_1& block, int64_t j, PanelQ4_1& panel) {
  panel.scales[j] = block.scale;
  panel.minima[j] = block.minimum;
  copy_words<4>(block.codes, panel.codes, j);
}

void place(const BlockQ8_0& block, int64_t j, PanelQ8_0& panel) {
  panel.scales[j] = block.scale;
  for (int i = 0; i < 8; ++i) std::memcpy(panel.codes[i][j], block.codes + 4 * i, 4);
}

void place(const BlockQ4_K& block, int64_t j, PanelQ4_K& panel) {
  panel.scales[j] = block.scale;
  panel.minima[j] = block.minimum;
  for (int part = 0; part < 8; ++part) {
    const SixBitPart values = six_bit_part(block.parts, part);
    panel.part_scales[part][j] = static_cast<uint8_t>(values.scale);
    panel.part_minima[part][j] = static_cast<uint8_t>(values.minimum);
  }
  for (int c = 0; c < 4; ++c) copy_words<8>(block.codes + 32 * c, panel.codes[c], j);
}

void place(const BlockP4& block, int64_t j, PanelP4& panel) {
  panel.scales[j] = block.scale;
  panel.minima[j] = block.minimum;
  copy_words<8>(block.codes, panel.codes, j);
}

void place(const BlockP8& block, int64_t j, PanelP8& panel) {
  panel.scales[j] = block.scale;
  for (int i = 0; i < 16; ++i) std::memcpy(panel.codes[i][j], block.codes + 4 * i, 4);
}

uint32_t load_word(const uint8_t* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// In a row, the low nibbles of bytes 64h ... 64h + 63 are groups 4h and 4h + 1, the high ones are
// groups 4h + 2 and 4h + 3.
void place(const BlockQ6_K& block, int64_t j, PanelQ6_K& panel) {
  constexpr uint32_t kNibbles = 0x0f0f0f0f;
  panel.scales[j] = block.scale;
  for (int part = 0; part < 16; ++part) panel.part_scales[part][j] = block.parts[part];
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 8; ++i) {
      const uint32_t a = load_word(block.low + 64 * h + 4 * i);
      const uint32_t b = load_word(block.low + 64 * h + 32 + 4 * i);
      const uint32_t first = (a & kNibbles) | (b & kNibbles) << 4;
      const uint32_t second = (a >> 4 & kNibbles) | (b & ~kNibbles);
      std::memcpy(panel.low[2 * h][i][j], &first, 4);
      std::memcpy(panel.low[2 * h + 1][i][j], &second, 4);
    }
    copy_words<8>(block.high + 32 * h, panel.high[h], j);
  }
}

// Panel by panel, block by block: 16 streams are read, one is written.
template <typename Block, typename Panel>
void lay_out(const void* rows, int64_t count, int64_t blocks, void* out) {
  const auto* from = static_cast<const char*>(rows);
  auto* to = static_cast<char*>(out);
  const int64_t stride = blocks * static_cast<int64_t>(sizeof(Block));
  for (int64_t first = 0; first < count; first += kPanelHeight) {
    const int64_t taken = std::min(kPanelHeight, count - first);
    for (int64_t b = 0; b < blocks; ++b, to += sizeof(Panel)) {
      Panel panel;
      if (taken < kPanelHeight) std::memset(&panel, 0, sizeof panel);
      for (int64_t j = 0; j < taken; ++j) {
        Block block;
        std::memcpy(&block, from + (first + j) * stride + b * static_cast<int64_t>(sizeof block),
                    sizeof block);
        place(block, j, panel);
      }
      std::memcpy(to, &panel, sizeof panel);
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
