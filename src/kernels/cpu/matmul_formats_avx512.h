// The integer weight formats of the AVX-512 matmul: how the blocks of 16 weight rows become
// registers in which each lane of 32 bits holds 4 codes of one row.
//
// For files compiled for AVX-512 or AMX; the namespace has no name so that nothing in it can be
// shared with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int kWords = kGroup / 4;  // words of 4 codes in a group

int32_t load_word(const void* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

uint64_t load_half_word(const char* p) {
  uint16_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

// What follows is inlined by force: g++ 12 would rather call it, and send 4 registers by memory.
//
// words[i], lane j: bytes 4i ... 4i+3 of those at `bytes` in row j, for 16 rows. Rows are put
// together while they are loaded, 4 to a register, and transposed as words: that is 20
// instructions for 16 bytes of 16 rows, once for all activation rows, and no horizontal add ever
// after (three of which cost as much as this for every activation row).
[[gnu::always_inline]] inline void load_words(const char* bytes, int64_t stride, __m512i* words) {
  __m512i v[4];
  for (int i = 0; i < 4; ++i) {
    const char* row = bytes + i * stride;
    v[i] = _mm512_castsi128_si512(load16(row));
    v[i] = _mm512_inserti32x4(v[i], load16(row + 4 * stride), 1);
    v[i] = _mm512_inserti32x4(v[i], load16(row + 8 * stride), 2);
    v[i] = _mm512_inserti32x4(v[i], load16(row + 12 * stride), 3);
  }
  const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]);
  const __m512i b = _mm512_unpackhi_epi32(v[0], v[1]);
  const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]);
  const __m512i d = _mm512_unpackhi_epi32(v[2], v[3]);
  words[0] = _mm512_unpacklo_epi64(a, c);
  words[1] = _mm512_unpackhi_epi64(a, c);
  words[2] = _mm512_unpacklo_epi64(b, d);
  words[3] = _mm512_unpackhi_epi64(b, d);
}

// A scale at the start of the block. Loads of single words, put together in plain registers: a
// gather is a little faster where it is fast, and far slower where microcode guards it.
[[gnu::always_inline]] inline __m512 load_scales(const char* rows, int64_t stride) {
  const auto four = [&](int64_t i) {
    const char* p = rows + i * stride;
    return static_cast<int64_t>(load_half_word(p) | load_half_word(p + stride) << 16 |
                                load_half_word(p + 2 * stride) << 32 |
                                load_half_word(p + 3 * stride) << 48);
  };
  const __m128i low = _mm_set_epi64x(four(4), four(0));
  const __m128i high = _mm_set_epi64x(four(12), four(8));
  return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
}

// A scale and then a minimum at the start of the block. Rows are taken in the order that the
// conversion and the two shuffles put right again.
[[gnu::always_inline]] inline void load_scales_and_minima(const char* rows, int64_t stride,
                                                          __m512& scale, __m512& minimum) {
  const auto eight = [&](const char* p) {
    const __m128i low = _mm_setr_epi32(load_word(p), load_word(p + stride),
                                       load_word(p + 4 * stride), load_word(p + 5 * stride));
    const __m128i high = _mm_setr_epi32(load_word(p + 8 * stride), load_word(p + 9 * stride),
                                        load_word(p + 12 * stride), load_word(p + 13 * stride));
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
  };
  const __m512 a = eight(rows);
  const __m512 b = eight(rows + 2 * stride);
  scale = _mm512_shuffle_ps(a, b, 0x88);
  minimum = _mm512_shuffle_ps(a, b, 0xdd);
}

// A format has kGroups groups of 32 codes in a block of kBytes; kPart is the one of them that is
// meant. Codes are unsigned bytes, the weight's plus kOffset: what vpdpbusd multiplies with the
// signed high bytes of activations.
//   load_block<kPart>(rows, stride, raw): the registers that codes come from; called for each part
//   in ascending order with the same `raw`
//   codes<kPart>(raw, words): words[i], lane j: codes 4i ... 4i+3 of row j

// Signed codes in their natural order.
struct Q8 {
  static constexpr bool kHasMinimum = false;
  static constexpr bool kNarrow = false;
  static constexpr int kHalves = 1;
  static constexpr int32_t kOffset = 128;
  static constexpr float kLargest = kLargestCode;
  static constexpr int64_t kGroups = 1;
  static constexpr int64_t kBytes = sizeof(BlockQ8_0);
  static constexpr int64_t kCodesAt = 2;

  static void load_heads(const char* rows, int64_t stride, __m512& scale, __m512& minimum) {
    scale = load_scales(rows, stride);
    minimum = _mm512_setzero_ps();
  }

  template <int kPart>
  static void load_block(const char* rows, int64_t stride, __m512i* raw) {
    load_words(rows + kCodesAt + kPart * kGroup, stride, raw);
    load_words(rows + kCodesAt + kPart * kGroup + 16, stride, raw + 4);
  }

  template <int kPart>
  static void codes(const __m512i* raw, __m512i* words) {
    const __m512i offset = _mm512_set1_epi8(-128);
    for (int i = 0; i < kWords; ++i) words[i] = _mm512_xor_si512(raw[i], offset);
  }
};

// The same codes, two groups to a scale.
struct P8 : Q8 {
  static constexpr int64_t kGroups = 2;
  static constexpr int64_t kBytes = sizeof(BlockP8);
};

struct Nibbles {
  static __m512i low(__m512i raw) { return _mm512_and_si512(raw, _mm512_set1_epi8(15)); }
  static __m512i high(__m512i raw) { return low(_mm512_srli_epi16(raw, 4)); }
};

// Low nibbles: elements 0 ... 15, high ones: 16 ... 31.
struct Q4 {
  static constexpr bool kHasMinimum = true;
  static constexpr bool kNarrow = true;
  static constexpr int kHalves = 1;
  static constexpr int32_t kOffset = 0;
  static constexpr float kLargest = kLargestCode;
  static constexpr int64_t kGroups = 1;
  static constexpr int64_t kBytes = sizeof(BlockQ4_1);
  static constexpr int64_t kCodesAt = 4;

  static void load_heads(const char* rows, int64_t stride, __m512& scale, __m512& minimum) {
    load_scales_and_minima(rows, stride, scale, minimum);
  }

  template <int kPart>
  static void load_block(const char* rows, int64_t stride, __m512i* raw) {
    load_words(rows + kCodesAt, stride, raw);
  }

  template <int kPart>
  static void codes(const __m512i* raw, __m512i* words) {
    for (int i = 0; i < 4; ++i) {
      words[i] = Nibbles::low(raw[i]);
      words[i + 4] = Nibbles::high(raw[i]);
    }
  }
};

// Low nibbles: the first group, high ones: the second.
struct P4 : Q4 {
  static constexpr int64_t kGroups = 2;
  static constexpr int64_t kBytes = sizeof(BlockP4);

  template <int kPart>
  static void load_block(const char* rows, int64_t stride, __m512i* raw) {
    if (kPart != 0) return;
    load_words(rows + kCodesAt, stride, raw);
    load_words(rows + kCodesAt + 16, stride, raw + 4);
  }

  template <int kPart>
  static void codes(const __m512i* raw, __m512i* words) {
    for (int i = 0; i < kWords; ++i) {
      words[i] = kPart == 0 ? Nibbles::low(raw[i]) : Nibbles::high(raw[i]);
    }
  }
};

}  // namespace
}  // namespace reckon::kernels::cpu
