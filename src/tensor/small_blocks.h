// Where blocks of 32 keep the codes of their elements (tensor/blocks.h).
#pragma once

#include <bit>
#include <cstdint>

#include "tensor/blocks.h"

namespace reckon {

inline int nibble_of_32(const uint8_t (&codes)[16], int element) {
  return element < 16 ? codes[element] & 15 : codes[element - 16] >> 4;
}

inline int five_bits(const uint8_t (&codes)[16], const uint8_t (&fifth)[4], int element) {
  return nibble_of_32(codes, element) | (fifth[element / 8] >> (element % 8) & 1) << 4;
}

// 2^(exponent - 128): below 2^-126 it is a denormal number.
inline float mxfp4_scale(uint8_t exponent) {
  const uint32_t bits =
      exponent < 2 ? uint32_t{1} << (21 + exponent) : static_cast<uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

}  // namespace reckon
