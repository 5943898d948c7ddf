// Element types and the block layouts of quantised ones, as plain types: kernels compiled for one
// instruction set include this and not dtype.h, whose functions come with it for everyone else.
//
// A row of K elements is K / block elements consecutive blocks; K must be a multiple of the block.
// Q4_1 and Q8_0 are the layouts of the GGUF file format
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and its type list), read in place.
#pragma once

#include <cstdint>

namespace reckon {

enum class DType : uint8_t { kF32, kF16, kBF16, kI32, kQ8_0, kQ4_1 };
inline constexpr int kDTypeCount = 6;

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

}  // namespace reckon
