// Blocks of panels (panel_blocks.h) as registers with 4 codes of a weight row in each of 16 lanes.
//
// For files compiled for AVX-512 alone; the namespace has no name so that nothing in it can be
// shared with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/panel_blocks.h"
#include "tensor/blocks.h"

namespace reckon::kernels::cpu {
namespace {

inline __m512i load_codes(const void* p) {
  return _mm512_loadu_si512(p);
}

inline __m512 load_halves(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

inline __m512 unsigned_bytes(const uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

inline __m512i signed_bytes(const int8_t* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

template <bool kHigh>
__m512i nibbles(__m512i raw) {
  return _mm512_and_si512(kHigh ? _mm512_srli_epi16(raw, 4) : raw, _mm512_set1_epi8(15));
}

// What all groups of a block share, and what a group has of its own.
struct PanelHead {
  __m512 scale, minimum;
};
struct PanelScales {
  __m512 scale, minimum;
  __m512i parts[2];  // integer scales of the two halves, kHalves == 2 only
};

// A format has kGroups groups of 32 codes in a Block, taken kTogether at a time: group kPart of the
// `quad`-th so many. codes() are unsigned bytes, the weight's code plus kOffset; where they are
// narrow they have 7 bits at most. kHalves: integer scales for so many parts of a group.
struct PanelFormat {
  static constexpr bool kHasMinimum = false;
  static constexpr bool kNarrow = true;
  static constexpr int kHalves = 1;
  static constexpr int kGroups = 1;
  static constexpr int kTogether = 1;
  static constexpr int32_t kOffset = 0;
  static constexpr float kLargest = kLargestCode;

  // Of formats whose groups share a scale.
  template <int kPart, typename Block>
  static PanelScales scales(const Block& /*block*/, const PanelHead& head, int /*quad*/) {
    return {head.scale, head.minimum, {}};
  }
};

// Word i of 32 codes of 4 bits, elements 0 ... 15 in the low nibbles.
struct NibblePanels : PanelFormat {
  template <int kPart, typename Block>
  static __m512i codes(const Block& block, int /*quad*/, int i) {
    return i < 4 ? nibbles<false>(load_codes(block.codes[i]))
                 : nibbles<true>(load_codes(block.codes[i - 4]));
  }
};

struct PanelsQ4_0 : NibblePanels {
  using Block = PanelQ4_0;
  static constexpr int32_t kOffset = 8;

  static PanelHead head(const Block& block) {
    return {load_halves(block.scales), _mm512_setzero_ps()};
  }
};

struct PanelsQ4_1 : NibblePanels {
  using Block = PanelQ4_1;
  static constexpr bool kHasMinimum = true;

  static PanelHead head(const Block& block) {
    return {load_halves(block.scales), load_halves(block.minima)};
  }
};

struct PanelsQ8_0 : PanelFormat {
  using Block = PanelQ8_0;
  static constexpr bool kNarrow = false;
  static constexpr int32_t kOffset = 128;

  static PanelHead head(const Block& block) {
    return {load_halves(block.scales), _mm512_setzero_ps()};
  }
  template <int kPart>
  static __m512i codes(const Block& block, int /*quad*/, int i) {
    return _mm512_xor_si512(load_codes(block.codes[i]), _mm512_set1_epi8(-128));
  }
};

struct PanelsP4 : PanelFormat {
  using Block = PanelP4;
  static constexpr bool kHasMinimum = true;
  static constexpr int kGroups = 2;
  static constexpr int kTogether = 2;

  static PanelHead head(const Block& block) {
    return {load_halves(block.scales), load_halves(block.minima)};
  }
  template <int kPart>
  static __m512i codes(const Block& block, int /*quad*/, int i) {
    return nibbles<kPart == 1>(load_codes(block.codes[i]));
  }
};

struct PanelsP8 : PanelFormat {
  using Block = PanelP8;
  static constexpr bool kNarrow = false;
  static constexpr int kGroups = 2;
  static constexpr int kTogether = 2;
  static constexpr int32_t kOffset = 128;

  static PanelHead head(const Block& block) {
    return {load_halves(block.scales), _mm512_setzero_ps()};
  }
  template <int kPart>
  static __m512i codes(const Block& block, int /*quad*/, int i) {
    return _mm512_xor_si512(load_codes(block.codes[8 * kPart + i]), _mm512_set1_epi8(-128));
  }
};

struct PanelsQ4_K : PanelFormat {
  using Block = PanelQ4_K;
  static constexpr bool kHasMinimum = true;
  static constexpr int kGroups = 8;
  static constexpr int kTogether = 4;

  static PanelHead head(const Block& block) {
    return {load_halves(block.scales),
            _mm512_mul_ps(load_halves(block.minima), _mm512_set1_ps(-1.0F))};
  }
  template <int kPart>
  static PanelScales scales(const Block& block, const PanelHead& head, int quad) {
    const int g = 4 * quad + kPart;
    return {_mm512_mul_ps(head.scale, unsigned_bytes(block.part_scales[g])),
            _mm512_mul_ps(head.minimum, unsigned_bytes(block.part_minima[g])),
            {}};
  }
  template <int kPart>
  static __m512i codes(const Block& block, int quad, int i) {
    return nibbles<kPart % 2 == 1>(load_codes(block.codes[2 * quad + kPart / 2][i]));
  }
};

struct PanelsQ6_K : PanelFormat {
  using Block = PanelQ6_K;
  static constexpr int kHalves = 2;
  static constexpr int kGroups = 8;
  static constexpr int kTogether = 4;
  static constexpr int32_t kOffset = 32;
  static constexpr float kLargest = kLargestCodeQ6;

  static PanelHead head(const Block& block) {
    return {load_halves(block.scales), _mm512_setzero_ps()};
  }
  template <int kPart>
  static PanelScales scales(const Block& block, const PanelHead& head, int quad) {
    const int part = 2 * (4 * quad + kPart);
    return {head.scale,
            head.minimum,
            {signed_bytes(block.part_scales[part]), signed_bytes(block.part_scales[part + 1])}};
  }
  template <int kPart>
  static __m512i codes(const Block& block, int quad, int i) {
    const __m512i low = nibbles<kPart % 2 == 1>(load_codes(block.low[2 * quad + kPart / 2][i]));
    __m512i high = load_codes(block.high[quad][i]);
    if (kPart < 2) high = _mm512_slli_epi16(high, kPart == 0 ? 4 : 2);
    if (kPart == 3) high = _mm512_srli_epi16(high, 2);
    constexpr int kFirstOrBoth = 0xf8;  // low | (high & mask)
    return _mm512_ternarylogic_epi32(low, high, _mm512_set1_epi8(0x30), kFirstOrBoth);
  }
};

// use(format) for the panels of a type; nothing for a type that has none.
template <typename Use>
void with_panel_format(DType type, const Use& use) {
  switch (type) {
    case DType::kQ4_0:
      return use(PanelsQ4_0{});
    case DType::kQ4_1:
      return use(PanelsQ4_1{});
    case DType::kQ8_0:
      return use(PanelsQ8_0{});
    case DType::kP4:
      return use(PanelsP4{});
    case DType::kP8:
      return use(PanelsP8{});
    case DType::kQ4_K:
      return use(PanelsQ4_K{});
    case DType::kQ6_K:
      return use(PanelsQ6_K{});
    default:
      return;
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
