// Where super-blocks keep the codes and the small scales of their elements (tensor/blocks.h).
#pragma once

#include <cstdint>

#include "tensor/blocks.h"

namespace reckon {

// Bits 2p and 2p + 1 of codes that are laid out in planes of 32 elements, four to a byte.
inline int two_bits(const uint8_t (&codes)[64], int element) {
  const int half = element / 128;
  const int plane = element % 128 / 32;
  return codes[32 * half + element % 32] >> (2 * plane) & 3;
}

// One bit an element: plane j of 32 elements is bit j of the bytes.
inline int one_bit(const uint8_t (&bits)[32], int element) {
  return bits[element % 32] >> (element / 32) & 1;
}

// Nibbles of Q4_K and Q5_K: 64 elements share 32 bytes.
inline int nibble_of_64(const uint8_t (&codes)[128], int element) {
  const int byte = codes[element / 64 * 32 + element % 32];
  return element % 64 < 32 ? byte & 15 : byte >> 4;
}

// The scale and the minimum of part j, 0...63 each, of Q4_K and Q5_K.
struct SixBitPart {
  int scale;
  int minimum;
};
inline SixBitPart six_bit_part(const uint8_t (&parts)[12], int j) {
  if (j < 4) return {parts[j] & 63, parts[4 + j] & 63};
  return {(parts[4 + j] & 15) | parts[j - 4] >> 6 << 4, parts[4 + j] >> 4 | parts[j] >> 6 << 4};
}

// The scale of part j, -32...31.
inline int part_scale(const BlockQ3_K& block, int j) {
  const int low = j < 8 ? block.parts[j] & 15 : block.parts[j - 8] >> 4;
  const int high = block.parts[8 + j % 4] >> (2 * (j / 4)) & 3;
  return (low | high << 4) - 32;
}
inline int part_scale(const BlockIQ4_XS& block, int j) {
  const int low = j % 2 == 0 ? block.parts_low[j / 2] & 15 : block.parts_low[j / 2] >> 4;
  const int high = block.parts_high >> (2 * j) & 3;
  return (low | high << 4) - 32;
}

// The code of an element, -4...3.
inline int signed_code(const BlockQ3_K& block, int element) {
  return (two_bits(block.codes, element) | one_bit(block.third, element) << 2) - 4;
}

}  // namespace reckon
