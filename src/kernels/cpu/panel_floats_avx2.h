// Weights of panels (kernels/panels.h) as float32: a column of 16 weight rows after another.
//
// For files compiled for AVX2 alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set. Plain types only.
#pragma once

#include "kernels/cpu/matmul_common_avx2.h"
#include "kernels/cpu/panel_formats_avx2.h"

namespace reckon::kernels::cpu {
namespace {

// Byte kByte of each lane, a weight code, as float32.
template <int kByte>
[[gnu::always_inline]] inline __m256 code_floats(__m256i codes) {
  const __m256i at = kByte == 0 ? codes : _mm256_srli_epi32(codes, 8 * kByte);
  return _mm256_cvtepi32_ps(kByte == 3 ? at : _mm256_and_si256(at, _mm256_set1_epi32(0xff)));
}

// Codes 4i ... 4i + 3 of 8 weight rows.
[[gnu::always_inline]] inline void put_floats(__m256i codes, __m256 scale, __m256 shift,
                                              float* out) {
  _mm256_storeu_ps(out, _mm256_fmadd_ps(code_floats<0>(codes), scale, shift));
  _mm256_storeu_ps(out + 16, _mm256_fmadd_ps(code_floats<1>(codes), scale, shift));
  _mm256_storeu_ps(out + 32, _mm256_fmadd_ps(code_floats<2>(codes), scale, shift));
  _mm256_storeu_ps(out + 48, _mm256_fmadd_ps(code_floats<3>(codes), scale, shift));
}

// Group kPart of a block, 32 columns of 16 weight rows.
template <typename Format, int kPart>
[[gnu::always_inline]] inline void group_floats(const typename Format::Block& block, int quad,
                                                float* out) {
  const __m256 offset = _mm256_set1_ps(static_cast<float>(-Format::kOffset));
  for (int lane = 0; lane < kPanelLanes; lane += 8, out += 8) {
    const PanelScales scales = Format::template scales<kPart>(block, quad, lane);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256 scale =
          Format::kHalves == 1
              ? scales.scale
              : _mm256_mul_ps(scales.scale, _mm256_cvtepi32_ps(scales.parts[half]));
      const __m256 shift = _mm256_fmadd_ps(scale, offset, scales.minimum);
#pragma GCC unroll 4
      for (int i = 4 * half; i < 4 * half + 4; ++i) {
        put_floats(Format::template codes<kPart>(block, quad, lane, i), scale, shift,
                   out + 4 * i * kPanelLanes);
      }
    }
  }
}

// Columns first ... first + count - 1 of one panel, whole blocks.
template <typename Format>
void dequantise_floats(const typename Format::Block* blocks, int64_t first, int64_t count,
                       float* out) {
  constexpr bool kTwo = Format::kTogether >= 2;
  constexpr bool kFour = Format::kTogether == 4;
  constexpr int64_t kGroupFloats = kGroup * kPanelLanes;
  const int64_t end = (first + count) / kGroup;
  for (int64_t g = first / kGroup; g < end; g += Format::kTogether) {
    const typename Format::Block& block = blocks[g / Format::kGroups];
    const int quad = static_cast<int>(g % Format::kGroups) / Format::kTogether;
    if (quad == 0) prefetch(reinterpret_cast<const char*>(&block) + 2048, sizeof block);
    group_floats<Format, 0>(block, quad, out);
    if (kTwo) group_floats<Format, kTwo ? 1 : 0>(block, quad, out + kGroupFloats);
    if (kFour) {
      group_floats<Format, kFour ? 2 : 0>(block, quad, out + 2 * kGroupFloats);
      group_floats<Format, kFour ? 3 : 0>(block, quad, out + 3 * kGroupFloats);
    }
    out += Format::kTogether * kGroupFloats;
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
