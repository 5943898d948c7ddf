// Blocks of panels (panel_blocks.h) as registers with 4 codes of a weight row in each of 8 lanes:
// half of a panel's rows, `first` and the 7 after it.
//
// For matmul_exact_panels_avx2.cpp alone; the namespace has no name so that nothing in it can be
// shared with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/panel_blocks.h"

namespace reckon::kernels::cpu {
namespace {

inline __m256i load_codes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

inline __m256 load_halves(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

inline __m256 unsigned_bytes(const uint8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}

inline __m256i signed_bytes(const int8_t* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}

template <bool kHigh>
__m256i nibbles(__m256i raw) {
  return _mm256_and_si256(kHigh ? _mm256_srli_epi16(raw, 4) : raw, _mm256_set1_epi8(15));
}

// What a group of 32 codes of 8 rows is scaled by.
struct PanelScales {
  __m256 scale, minimum;
  __m256i parts[2];  // integer scales of the two halves, kHalves == 2 only
};

// Names as in panel_formats_avx512.h, with whole blocks at once: a group is told at run time but
// for its low bits, `kPart` of kTogether.
struct PanelFormat {
  static constexpr bool kHasMinimum = false;
  static constexpr int kHalves = 1;
  static constexpr int kGroups = 1;
  static constexpr int kTogether = 1;
  static constexpr int32_t kOffset = 0;
  static constexpr float kLargest = kLargestCode;
  static void order(__m256i& /*low*/, __m256i& /*high*/) {}
};

struct NibblePanels : PanelFormat {
  template <int kPart, typename Block>
  static __m256i codes(const Block& block, int /*quad*/, int first, int i) {
    return i < 4 ? nibbles<false>(load_codes(block.codes[i][first]))
                 : nibbles<true>(load_codes(block.codes[i - 4][first]));
  }
};

struct PanelsQ4_0 : NibblePanels {
  using Block = PanelQ4_0;
  static constexpr int32_t kOffset = 8;

  template <int kPart>
  static PanelScales scales(const Block& block, int /*quad*/, int first) {
    return {load_halves(block.scales + first), _mm256_setzero_ps(), {}};
  }
};

struct PanelsQ4_1 : NibblePanels {
  using Block = PanelQ4_1;
  static constexpr bool kHasMinimum = true;

  template <int kPart>
  static PanelScales scales(const Block& block, int /*quad*/, int first) {
    return {load_halves(block.scales + first), load_halves(block.minima + first), {}};
  }
};

struct PanelsP4 : PanelFormat {
  using Block = PanelP4;
  static constexpr bool kHasMinimum = true;
  static constexpr int kGroups = 2;
  static constexpr int kTogether = 2;

  template <int kPart>
  static PanelScales scales(const Block& block, int /*quad*/, int first) {
    return {load_halves(block.scales + first), load_halves(block.minima + first), {}};
  }
  template <int kPart>
  static __m256i codes(const Block& block, int /*quad*/, int first, int i) {
    return nibbles<kPart == 1>(load_codes(block.codes[i][first]));
  }
};

struct PanelsQ4_K : PanelFormat {
  using Block = PanelQ4_K;
  static constexpr bool kHasMinimum = true;
  static constexpr int kGroups = 8;
  static constexpr int kTogether = 4;

  template <int kPart>
  static PanelScales scales(const Block& block, int quad, int first) {
    const int g = 4 * quad + kPart;
    const __m256 minimum = _mm256_mul_ps(load_halves(block.minima + first), _mm256_set1_ps(-1.0F));
    return {_mm256_mul_ps(load_halves(block.scales + first),
                          unsigned_bytes(block.part_scales[g] + first)),
            _mm256_mul_ps(minimum, unsigned_bytes(block.part_minima[g] + first)),
            {}};
  }
  template <int kPart>
  static __m256i codes(const Block& block, int quad, int first, int i) {
    return nibbles<kPart % 2 == 1>(load_codes(block.codes[2 * quad + kPart / 2][i][first]));
  }
};

struct PanelsQ6_K : PanelFormat {
  using Block = PanelQ6_K;
  static constexpr int kHalves = 2;
  static constexpr int kGroups = 8;
  static constexpr int kTogether = 4;
  static constexpr int32_t kOffset = 32;
  static constexpr float kLargest = kLargestCodeQ6;

  template <int kPart>
  static PanelScales scales(const Block& block, int quad, int first) {
    const int part = 2 * (4 * quad + kPart);
    return {load_halves(block.scales + first),
            _mm256_setzero_ps(),
            {signed_bytes(block.part_scales[part] + first),
             signed_bytes(block.part_scales[part + 1] + first)}};
  }
  template <int kPart>
  static __m256i codes(const Block& block, int quad, int first, int i) {
    const __m256i low =
        nibbles<kPart % 2 == 1>(load_codes(block.low[2 * quad + kPart / 2][i][first]));
    __m256i high = load_codes(block.high[quad][i][first]);
    if (kPart < 2) high = _mm256_slli_epi16(high, kPart == 0 ? 4 : 2);
    if (kPart == 3) high = _mm256_srli_epi16(high, 2);
    return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(0x30)));
  }
};

}  // namespace
}  // namespace reckon::kernels::cpu
