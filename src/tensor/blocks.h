// Element types and the block layouts of quantised ones, as plain types: kernels compiled for one
// instruction set include this and not dtype.h, whose functions come with it for everyone else.
//
// A row of K elements is a sequence of blocks. All but P4 and P8 are layouts of the GGUF file
// format (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and its type list), read in
// place; K must be a multiple of their block. P4 and P8 are Reckon's own packed types, made at load
// by tensor/quantise.h and never read from a file; the last block of a row is padded with codes of
// 0 where K is no multiple of 64, and whoever multiplies takes the activations beyond K as 0.
//
// Members named `scale` and `minimum` of two bytes are IEEE halves. Rows
// in a file stand at any address: blocks are read with memcpy or unaligned loads.
#pragma once

#include <cstdint>

namespace reckon {

enum class DType : uint8_t {
  // Plain.
  kF32,
  kF16,
  kBF16,
  kI32,
  // Blocks of 32.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kIQ4_NL,
  kMXFP4,
  // Super-blocks of 256.
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_XS,
  // Reckon's own blocks of 64.
  kP4,
  kP8,
};
inline constexpr int kDTypeCount = 19;

// ---- Blocks of 32, from GGUF ----

// 32 weights: w = scale * (code - 8), code in 0...15.
struct BlockQ4_0 {
  uint16_t scale;
  uint8_t codes[16];  // low nibble: element i, high nibble: element i + 16
};
static_assert(sizeof(BlockQ4_0) == 18);

// 32 weights: w = scale * code + minimum, code in 0...15.
struct BlockQ4_1 {
  uint16_t scale;
  uint16_t minimum;
  uint8_t codes[16];  // low nibble: element i, high nibble: element i + 16
};
static_assert(sizeof(BlockQ4_1) == 20);

// 32 weights: w = scale * (code - 16), code in 0...31.
struct BlockQ5_0 {
  uint16_t scale;
  uint8_t fifth[4];   // bit i % 8 of byte i / 8: bit 4 of element i's code
  uint8_t codes[16];  // bits 0...3, low nibble: element i, high nibble: element i + 16
};
static_assert(sizeof(BlockQ5_0) == 22);

// 32 weights: w = scale * code + minimum, code in 0...31.
struct BlockQ5_1 {
  uint16_t scale;
  uint16_t minimum;
  uint8_t fifth[4];   // as in Q5_0
  uint8_t codes[16];  // as in Q5_0
};
static_assert(sizeof(BlockQ5_1) == 24);

// 32 weights: w = scale * code, code in -128...127.
struct BlockQ8_0 {
  uint16_t scale;
  int8_t codes[32];  // element i
};
static_assert(sizeof(BlockQ8_0) == 34);

// The 16 weights, in steps of a scale, that a code of IQ4_NL and IQ4_XS stands for: finer near 0.
inline constexpr int8_t kIq4Steps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

// 32 weights: w = scale * kIq4Steps[code], code in 0...15.
struct BlockIQ4_NL {
  uint16_t scale;
  uint8_t codes[16];  // low nibble: element i, high nibble: element i + 16
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// Twice the value of each FP4 (E2M1) code of the OCP Microscaling formats 1.0: 0, 0.5, 1, 1.5, 2,
// 3, 4, 6 and their negatives. Code 8 reads as +0.
inline constexpr int8_t kFp4Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// 32 weights: w = 2^(exponent - 128) * kFp4Doubled[code]. Exponent 255, the standard's NaN, reads
// as 2^127.
struct BlockMXFP4 {
  uint8_t exponent;
  uint8_t codes[16];  // low nibble: element i, high nibble: element i + 16
};
static_assert(sizeof(BlockMXFP4) == 17);

// ---- Super-blocks of 256, from GGUF: parts of 16 or 32 weights with small scales of their own
// ----

// 16 parts of 16. w = (scale * s) * code - (minimum * m), code in 0...3; s and m of element e are
// the low and the high nibble of parts[e / 16].
struct BlockQ2_K {
  uint8_t parts[16];
  uint8_t codes[64];  // bits 2p...2p+1 of byte 32h + i: element 128h + 32p + i; i < 32, p < 4
  uint16_t scale;
  uint16_t minimum;
};
static_assert(sizeof(BlockQ2_K) == 84);

// 16 parts of 16. w = (scale * (s - 32)) * (code - 4), code in 0...7, s in 0...63. For part j, bits
// 0...3 of s are nibble j / 8 (0: low) of parts[j % 8], bits 4...5 are bits 2(j / 4)...2(j / 4)+1
// of parts[8 + j % 4].
struct BlockQ3_K {
  uint8_t third[32];  // bit j of byte i: bit 2 of the code of element 32j + i; i < 32, j < 8
  uint8_t codes[64];  // bits 0...1 of codes, placed as in Q2_K
  uint8_t parts[12];
  uint16_t scale;
};
static_assert(sizeof(BlockQ3_K) == 110);

// 8 parts of 32. w = (scale * s) * code - (minimum * m), code in 0...15, s and m in 0...63. For
// part j < 4: s is bits 0...5 of parts[j], m those of parts[4 + j]. For part 4 + j: bits 0...3 of s
// and m are the low and the high nibble of parts[8 + j], bits 4...5 are bits 6...7 of parts[j] (s)
// and parts[4 + j] (m).
struct BlockQ4_K {
  uint16_t scale;
  uint16_t minimum;
  uint8_t parts[12];
  uint8_t codes[128];  // byte 32c + i; low nibble: element 64c + i, high nibble: 64c + 32 + i
};
static_assert(sizeof(BlockQ4_K) == 144);

// 8 parts of 32. As Q4_K with codes in 0...31.
struct BlockQ5_K {
  uint16_t scale;
  uint16_t minimum;
  uint8_t parts[12];   // as in Q4_K
  uint8_t fifth[32];   // bit j of byte i: bit 4 of the code of element 32j + i; i < 32, j < 8
  uint8_t codes[128];  // bits 0...3 of codes, placed as in Q4_K
};
static_assert(sizeof(BlockQ5_K) == 176);

// 16 parts of 16. w = (scale * parts[e / 16]) * (code - 32), code in 0...63. With element e =
// 128h + 32p + i (i < 32, p < 4):
struct BlockQ6_K {
  uint8_t low[128];  // bits 0...3: nibble p / 2 (0: low) of byte 64h + 32(p % 2) + i
  uint8_t high[64];  // bits 4...5: bits 2p...2p+1 of byte 32h + i
  int8_t parts[16];
  uint16_t scale;
};
static_assert(sizeof(BlockQ6_K) == 210);

// 8 parts of 32. w = (scale * (s - 32)) * kIq4Steps[code], code in 0...15, s in 0...63. For part j,
// bits 0...3 of s are nibble j % 2 (0: low) of parts_low[j / 2], bits 4...5 are bits 2j...2j+1 of
// parts_high.
struct BlockIQ4_XS {
  uint16_t scale;
  uint16_t parts_high;
  uint8_t parts_low[4];
  uint8_t codes[128];  // byte 16j + i; low nibble: element 32j + i, high nibble: 32j + 16 + i
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// ---- Reckon's own ----

// 64 weights: w = scale * code + minimum, code in 0...15.
struct BlockP4 {
  uint16_t scale;
  uint16_t minimum;
  uint8_t codes[32];  // low nibble: element i, high nibble: element i + 32
};
static_assert(sizeof(BlockP4) == 36);

// 64 weights: w = scale * code, code in -127...127.
struct BlockP8 {
  uint16_t scale;
  int8_t codes[64];  // element i
};
static_assert(sizeof(BlockP8) == 66);

}  // namespace reckon
