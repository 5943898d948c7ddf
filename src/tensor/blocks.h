// Element types and the block layouts of quantised ones, as plain types: kernels compiled for one
// instruction set include this and not dtype.h, whose functions come with it for everyone else.
//
// A row of K elements is a sequence of blocks. Q4_1 and Q8_0 are the layouts of the GGUF file
// format (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and its type list), read in
// place; K must be a multiple of their block. P4 and P8 are Reckon's own packed types, made at load
// by tensor/quantise.h and never read from a file; the last block of a row is padded with codes of
// 0 where K is no multiple of 64, and whoever multiplies takes the activations beyond K as 0.
#pragma once

#include <cstdint>

namespace reckon {

enum class DType : uint8_t { kF32, kF16, kBF16, kI32, kQ8_0, kQ4_1, kP4, kP8 };
inline constexpr int kDTypeCount = 8;

// 32 weights: w = scale * code, code in -128...127.
struct BlockQ8_0 {
  uint16_t scale;    // IEEE half
  int8_t codes[32];  // element i
};
static_assert(sizeof(BlockQ8_0) == 34);

// 32 weights: w = scale * code + minimum, code in 0...15.
struct BlockQ4_1 {
  uint16_t scale;     // IEEE half
  uint16_t minimum;   // IEEE half
  uint8_t codes[16];  // low nibble: element i, high nibble: element i + 16
};
static_assert(sizeof(BlockQ4_1) == 20);

// 64 weights: w = scale * code + minimum, code in 0...15.
struct BlockP4 {
  uint16_t scale;     // IEEE half
  uint16_t minimum;   // IEEE half
  uint8_t codes[32];  // low nibble: element i, high nibble: element i + 32
};
static_assert(sizeof(BlockP4) == 36);

// 64 weights: w = scale * code, code in -127...127.
struct BlockP8 {
  uint16_t scale;    // IEEE half
  int8_t codes[64];  // element i
};
static_assert(sizeof(BlockP8) == 66);

}  // namespace reckon
