// Panels: 16 weight rows side by side, as kernels with a weight row in each of 16 lanes of 32 bits
// read them. A panel is a sequence of the blocks below, one for each block of its rows; each takes
// what 16 blocks of the rows take (q4_k: 3 % more, since its 6-bit scales become bytes). Codes are
// those of the rows (tensor/blocks.h), moved: 4 of a row fill a lane, `word` i of a group of 32 has
// its codes 4i ... 4i + 3.
//
// Plain types only.
#pragma once

#include <cstdint>

namespace reckon::kernels::cpu {

// Byte b of lane j of word i: low nibble: code 4i + b of row j, high nibble: code 16 + 4i + b.
struct PanelQ4_0 {
  uint16_t scales[16];
  uint8_t codes[4][16][4];
};
static_assert(sizeof(PanelQ4_0) == 16 * 18);

struct PanelQ4_1 {
  uint16_t scales[16];
  uint16_t minima[16];
  uint8_t codes[4][16][4];  // as in PanelQ4_0
};
static_assert(sizeof(PanelQ4_1) == 16 * 20);

// Byte b of lane j of word i: code 4i + b of row j.
struct PanelQ8_0 {
  uint16_t scales[16];
  int8_t codes[8][16][4];
};
static_assert(sizeof(PanelQ8_0) == 16 * 34);

// Groups 2c and 2c + 1 share codes[c]: low and high nibbles of the words of 32 codes.
struct PanelQ4_K {
  uint16_t scales[16];
  uint16_t minima[16];
  uint8_t part_scales[8][16];
  uint8_t part_minima[8][16];
  uint8_t codes[4][8][16][4];
};
static_assert(sizeof(PanelQ4_K) == 16 * 148);

// Bits 0...3 of the codes of groups 2c and 2c + 1 are the nibbles of low[c]; bits 4...5 of group
// 4h + p are bits 2p...2p + 1 of high[h].
struct PanelQ6_K {
  uint16_t scales[16];
  int8_t part_scales[16][16];
  uint8_t low[4][8][16][4];
  uint8_t high[2][8][16][4];
};
static_assert(sizeof(PanelQ6_K) == 16 * 210);

// Word i holds 4 codes of group 0 (elements 0 ... 31) in the low nibbles, of group 1 in the high
// ones.
struct PanelP4 {
  uint16_t scales[16];
  uint16_t minima[16];
  uint8_t codes[8][16][4];
};
static_assert(sizeof(PanelP4) == 16 * 36);

// Byte b of lane j of word i: code 4i + b of row j.
struct PanelP8 {
  uint16_t scales[16];
  int8_t codes[16][16][4];
};
static_assert(sizeof(PanelP8) == 16 * 66);

}  // namespace reckon::kernels::cpu
