// Weights of panels (kernels/panels.h) as AMX tiles of bfloat16: dequantised in float32, then
// rounded.
//
// For files compiled for AMX and AVX-512 BF16 alone; the namespace has no name so that nothing in
// it can be shared with code for another instruction set. Plain types only.
#pragma once

#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/panel_formats_avx512.h"
#include "kernels/cpu/tiles_amx.h"

namespace reckon::kernels::cpu {
namespace {

// A byte of codes becomes a float32 without a conversion: put into the mantissa of 2^7 (or, where
// codes have 8 bits, of 2^15) it reads 128 + code (32768 + code), and the multiply-add that scales
// it takes the 128 away.
template <typename Format>
struct CodeFloats {
  static constexpr int kBit = Format::kNarrow ? 16 : 8;
  static constexpr int32_t kBias = Format::kNarrow ? 128 : 32768;
  static constexpr int32_t kExponent = Format::kNarrow ? 0x43000000 : 0x47000000;

  template <int kByte>
  static __m512 get(__m512i codes) {
    constexpr int kShift = kBit - 8 * kByte;
    __m512i at = codes;
    if (kShift > 0) at = _mm512_slli_epi32(codes, kShift > 0 ? kShift : 0);
    if (kShift < 0) at = _mm512_srli_epi32(codes, kShift < 0 ? -kShift : 0);
    constexpr int kMaskedOr = 0xea;  // (at & mask) | exponent
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(at, _mm512_set1_epi32(0xff << kBit),
                                                         _mm512_set1_epi32(kExponent), kMaskedOr));
  }
};

// Codes 4i ... 4i + 3 of 16 weight rows as two rows of a tile; `shift` takes the codes' bias away
// and adds the minimum.
template <typename Format>
[[gnu::always_inline]] inline void put_codes(__m512i codes, __m512 scale, __m512 shift,
                                             char* rows) {
  using Floats = CodeFloats<Format>;
  const __m512 w0 = _mm512_fmadd_ps(Floats::template get<0>(codes), scale, shift);
  const __m512 w1 = _mm512_fmadd_ps(Floats::template get<1>(codes), scale, shift);
  const __m512 w2 = _mm512_fmadd_ps(Floats::template get<2>(codes), scale, shift);
  const __m512 w3 = _mm512_fmadd_ps(Floats::template get<3>(codes), scale, shift);
  _mm512_storeu_si512(rows, pairs_of_bfloat16(w0, w1));
  _mm512_storeu_si512(rows + 64, pairs_of_bfloat16(w2, w3));
}

// What a code of 0 becomes, but for the scale.
template <typename Format>
__m512 code_offset() {
  return _mm512_set1_ps(static_cast<float>(-(CodeFloats<Format>::kBias + Format::kOffset)));
}

// Group kPart of a block of a panel as one tile: row 2i + h holds elements 4i + 2h and 4i + 2h + 1
// of each of the 16 weight rows.
template <typename Format, int kPart>
[[gnu::always_inline]] inline void dequantise_group(const typename Format::Block& block,
                                                    const PanelHead& head, int quad, char* tile) {
  const PanelScales scales = Format::template scales<kPart>(block, head, quad);
  const __m512 offset = code_offset<Format>();
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512 scale = Format::kHalves == 1
                             ? scales.scale
                             : _mm512_mul_ps(scales.scale, _mm512_cvtepi32_ps(scales.parts[half]));
    const __m512 shift = _mm512_fmadd_ps(scale, offset, scales.minimum);
#pragma GCC unroll 4
    for (int i = 4 * half; i < 4 * half + 4; ++i) {
      put_codes<Format>(Format::template codes<kPart>(block, quad, i), scale, shift,
                        tile + 128 * i);
    }
  }
}

// Tiles first ... first + count - 1 of one panel. A part of K is whole blocks (kPartTiles = 8).
template <typename Format>
void dequantise_panel(const typename Format::Block* blocks, int64_t first, int64_t count,
                      char* tile) {
  constexpr bool kTwo = Format::kTogether >= 2;
  constexpr bool kFour = Format::kTogether == 4;
  for (int64_t t = 0; t < count;) {
    const typename Format::Block& block = blocks[(first + t) / Format::kGroups];
    prefetch(reinterpret_cast<const char*>(&block) + 2048, sizeof block);
    const PanelHead head = Format::head(block);
    for (int quad = 0; quad < Format::kGroups / Format::kTogether; ++quad) {
      dequantise_group<Format, 0>(block, head, quad, tile);
      if (kTwo) dequantise_group<Format, kTwo ? 1 : 0>(block, head, quad, tile + kTileBytes);
      if (kFour) {
        dequantise_group<Format, kFour ? 2 : 0>(block, head, quad, tile + 2 * kTileBytes);
        dequantise_group<Format, kFour ? 3 : 0>(block, head, quad, tile + 3 * kTileBytes);
      }
      tile += Format::kTogether * kTileBytes;
      t += Format::kTogether;
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
