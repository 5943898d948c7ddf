// For files compiled for AVX2 alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

namespace reckon::kernels::cpu {
namespace {

// Lane j of rows[i] and lane i of rows[j] change places.
[[gnu::always_inline]] inline void transpose8(__m256 (&rows)[8]) {
  __m256 pairs[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  __m256 fours[8];  // fours[4h + i]: lanes i and i + 4 of rows 4h ... 4h + 3
#pragma GCC unroll 2
  for (int h = 0; h < 8; h += 4) {
    fours[h] = _mm256_shuffle_ps(pairs[h], pairs[h + 2], 0x44);
    fours[h + 1] = _mm256_shuffle_ps(pairs[h], pairs[h + 2], 0xee);
    fours[h + 2] = _mm256_shuffle_ps(pairs[h + 1], pairs[h + 3], 0x44);
    fours[h + 3] = _mm256_shuffle_ps(pairs[h + 1], pairs[h + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
