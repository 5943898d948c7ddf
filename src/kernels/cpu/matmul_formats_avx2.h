// The integer weight formats of the AVX2 matmul: how blocks of codes become registers. Each says in
// which order its codes are easiest to unpack; activation codes are put in the same order.
//
// For matmul_exact_avx2.cpp alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_common_avx2.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

// The scales of 8 rows are loaded one by one: a gather is no faster where it is fast, and far
// slower on processors whose microcode keeps gathers from leaking data.
uint64_t load_half_word(const char* p) {
  uint16_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

int32_t load_word(const char* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return word;
}

float half_to_float(const void* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return _cvtsh_ss(bits);
}

// A format has kGroups groups of 32 codes in a block of kBytes; kPart is the one of them
// that is meant.

// Codes in their natural order.
struct Q8 {
  static constexpr bool kHasMinimum = false;
  static constexpr float kLargest = kLargestCode;
  static constexpr int64_t kGroups = 1;
  static constexpr int64_t kBytes = sizeof(BlockQ8_0);
  static constexpr int64_t kCodesAt = 2;

  // Scales (and minima) of the same block of 8 weight rows, in order.
  static void load_heads(const char* rows, int64_t stride, __m256& scale, __m256& minimum) {
    const auto four = [&](const char* p) {
      return load_half_word(p) | load_half_word(p + stride) << 16 |
             load_half_word(p + 2 * stride) << 32 | load_half_word(p + 3 * stride) << 48;
    };
    const auto low = static_cast<int64_t>(four(rows));
    const auto high = static_cast<int64_t>(four(rows + 4 * stride));
    scale = _mm256_cvtph_ps(_mm_set_epi64x(high, low));
    minimum = _mm256_setzero_ps();
  }

  // Part i is weight row i: 32 codes in 2 registers.
  static constexpr int kParts = 8;
  static constexpr int kRegisters = 2;

  template <int kPart>
  static void unpack(const char* rows, int64_t stride, int i, __m256i* u) {
    const char* codes = rows + i * stride + kCodesAt + kPart * kGroup;
    u[0] = _mm256_cvtepi8_epi16(load_half(codes));
    u[1] = _mm256_cvtepi8_epi16(load_half(codes + 16));
  }

  static void load_codes(const int16_t* codes, __m256i* x) {
    x[0] = load(codes);
    x[1] = load(codes + 16);
  }

  // Lane i: the dot of weight row i, from the sums of each part.
  static __m256i combine(const __m256i* s) {
    const __m256i s0123 =
        _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    const __m256i s4567 =
        _mm256_hadd_epi32(_mm256_hadd_epi32(s[4], s[5]), _mm256_hadd_epi32(s[6], s[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(s0123, s4567, 0x20),
                            _mm256_permute2x128_si256(s0123, s4567, 0x31));
  }

  template <int kPart>
  static void unpack_block(const char* block, int16_t* codes, float* scale, float* /*minimum*/) {
    const char* from = block + kCodesAt + kPart * kGroup;
    store(codes, _mm256_cvtepi8_epi16(load_half(from)));
    store(codes + 16, _mm256_cvtepi8_epi16(load_half(from + 16)));
    *scale = half_to_float(block);
  }

  static void order(__m256i& /*low*/, __m256i& /*high*/) {}
};

// The same codes, two groups to a scale.
struct P8 : Q8 {
  static constexpr int64_t kGroups = 2;
  static constexpr int64_t kBytes = sizeof(BlockP8);
};

// Nibbles come out of 16-bit words by shifts: bytes 0, 2, ... low (elements 0, 2, ... 14), the same
// bytes high (16, 18, ... 30), then bytes 1, 3, ... low and high (1, 3, ... and 17, 19, ...).
struct Q4 {
  static constexpr bool kHasMinimum = true;
  static constexpr float kLargest = kLargestCode;
  static constexpr int64_t kGroups = 1;
  static constexpr int64_t kBytes = sizeof(BlockQ4_1);
  static constexpr int64_t kCodesAt = 4;

  // Rows are taken in the order that the conversion and the two shuffles put right again.
  static void load_heads(const char* rows, int64_t stride, __m256& scale, __m256& minimum) {
    const auto four = [&](const char* p) {
      return _mm_setr_epi32(load_word(p), load_word(p + stride), load_word(p + 4 * stride),
                            load_word(p + 5 * stride));
    };
    const __m256 low = _mm256_cvtph_ps(four(rows));
    const __m256 high = _mm256_cvtph_ps(four(rows + 2 * stride));
    scale = _mm256_shuffle_ps(low, high, 0x88);
    minimum = _mm256_shuffle_ps(low, high, 0xdd);
  }

  // Part i is weight row i in the low half of registers and row i + 4 in the high half: four runs.
  static constexpr int kParts = 4;
  static constexpr int kRegisters = 4;

  template <int kPart>
  static void unpack(const char* rows, int64_t stride, int i, __m256i* u) {
    const __m256i nibble = _mm256_set1_epi16(15);
    const char* codes = rows + i * stride + kCodesAt;
    const __m256i w = _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(codes)),
                                              load_half(codes + 4 * stride), 1);
    u[0] = _mm256_and_si256(w, nibble);
    u[1] = _mm256_and_si256(_mm256_srli_epi16(w, 4), nibble);
    u[2] = _mm256_and_si256(_mm256_srli_epi16(w, 8), nibble);
    u[3] = _mm256_srli_epi16(w, 12);
  }

  static void load_codes(const int16_t* codes, __m256i* x) {
    for (int i = 0; i < 4; ++i) x[i] = load_twice(codes + 8 * i);
  }

  static __m256i combine(const __m256i* s) {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
  }

  template <int kPart>
  static void unpack_block(const char* block, int16_t* codes, float* scale, float* minimum) {
    const __m256i nibble = _mm256_set1_epi16(15);
    const __m256i shifts = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    const __m256i w = _mm256_srlv_epi32(load_twice(block + kCodesAt), shifts);
    store(codes, _mm256_and_si256(w, nibble));
    store(codes + 16, _mm256_and_si256(_mm256_srli_epi16(w, 8), nibble));
    *scale = half_to_float(block);
    *minimum = half_to_float(block + 2);
  }

  // From elements 0...15 and 16...31 to the four runs.
  static void order(__m256i& low, __m256i& high) {
    const __m256i even_odd = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
                                              0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i a = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(low, even_odd), 0xd8);
    const __m256i b = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(high, even_odd), 0xd8);
    low = _mm256_permute2x128_si256(a, b, 0x20);
    high = _mm256_permute2x128_si256(a, b, 0x31);
  }
};

// The nibbles of one group, as 16-bit words: bytes 0, 2, ... 30 (its elements 0, 2, ... 30), then
// bytes 1, 3, ... 31. In that order Q4's four runs are the same two.
struct P4 : Q4 {
  static constexpr int64_t kGroups = 2;
  static constexpr int64_t kBytes = sizeof(BlockP4);

  // Part i is weight row i: a group in 2 registers. Pairing rows in halves of registers, as Q4
  // does, would save as many horizontal adds as it costs loads and additions here.
  static constexpr int kParts = Q8::kParts;
  static constexpr int kRegisters = Q8::kRegisters;

  template <int kPart>
  static void unpack(const char* rows, int64_t stride, int i, __m256i* u) {
    split<kPart>(load(rows + i * stride + kCodesAt), u);
  }

  static void load_codes(const int16_t* codes, __m256i* x) { Q8::load_codes(codes, x); }
  static __m256i combine(const __m256i* s) { return Q8::combine(s); }

  template <int kPart>
  static void unpack_block(const char* block, int16_t* codes, float* scale, float* minimum) {
    __m256i u[2];
    split<kPart>(load(block + kCodesAt), u);
    store(codes, u[0]);
    store(codes + 16, u[1]);
    *scale = half_to_float(block);
    *minimum = half_to_float(block + 2);
  }

 private:
  template <int kPart>
  static void split(__m256i w, __m256i* u) {
    const __m256i nibble = _mm256_set1_epi16(15);
    u[0] = _mm256_and_si256(kPart == 0 ? w : _mm256_srli_epi16(w, 4), nibble);
    u[1] =
        kPart == 0 ? _mm256_and_si256(_mm256_srli_epi16(w, 8), nibble) : _mm256_srli_epi16(w, 12);
  }
};

}  // namespace
}  // namespace reckon::kernels::cpu
