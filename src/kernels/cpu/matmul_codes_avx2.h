// Activations as int16 codes (canonical_order.h), in the layouts of the direct and the tiled path.
//
// For the AVX2 matmuls alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_common_avx2.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

inline int32_t largest_lane(__m256i v) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}

inline int32_t sum_lanes(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

// The codes of one group in the format's order, with scale and scaled sum.
struct Quantised {
  __m256i low, high;
  float scale, sum;
};

template <typename Format>
Quantised quantise(const float* x) {
  const __m256i mask = _mm256_set1_epi32(kMagnitudeMask);
  const __m256 v0 = _mm256_loadu_ps(x);
  const __m256 v1 = _mm256_loadu_ps(x + 8);
  const __m256 v2 = _mm256_loadu_ps(x + 16);
  const __m256 v3 = _mm256_loadu_ps(x + 24);
  const __m256i m01 = _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(v0), mask),
                                       _mm256_and_si256(_mm256_castps_si256(v1), mask));
  const __m256i m23 = _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(v2), mask),
                                       _mm256_and_si256(_mm256_castps_si256(v3), mask));
  const int32_t magnitude = largest_lane(_mm256_max_epi32(m01, m23));
  Quantised out{_mm256_setzero_si256(), _mm256_setzero_si256(), 0, 0};
  if (magnitude >= kInfinityBits) {
    out.scale = out.sum = __builtin_nanf("");
    return out;
  }
  if (magnitude < kSmallestMagnitude) return out;
  float largest;
  __builtin_memcpy(&largest, &magnitude, sizeof largest);
  const __m256 inverse = _mm256_set1_ps(Format::kLargest / largest);
  const __m256i c0 = _mm256_cvtps_epi32(_mm256_mul_ps(v0, inverse));
  const __m256i c1 = _mm256_cvtps_epi32(_mm256_mul_ps(v1, inverse));
  const __m256i c2 = _mm256_cvtps_epi32(_mm256_mul_ps(v2, inverse));
  const __m256i c3 = _mm256_cvtps_epi32(_mm256_mul_ps(v3, inverse));
  out.low = _mm256_permute4x64_epi64(_mm256_packs_epi32(c0, c1), 0xd8);
  out.high = _mm256_permute4x64_epi64(_mm256_packs_epi32(c2, c3), 0xd8);
  out.scale = largest / Format::kLargest;
  if (Format::kHasMinimum) {
    const __m256i sums = _mm256_add_epi32(_mm256_add_epi32(c0, c1), _mm256_add_epi32(c2, c3));
    out.sum = out.scale * static_cast<float>(sum_lanes(sums));
  }
  Format::order(out.low, out.high);
  return out;
}

// Group g of a row of k activations, filled up with zeros beyond k. Only formats whose rows are
// padded have such a group.
template <typename Format>
Quantised quantise_at(const float* row, int64_t k, int64_t g) {
  const int64_t count = k - g * kGroup;
  if (Format::kGroups == 1 || count >= kGroup) return quantise<Format>(row + g * kGroup);
  float padded[kGroup] = {};
  for (int64_t i = 0; i < count; ++i) padded[i] = row[g * kGroup + i];
  return quantise<Format>(padded);
}

// Task: one activation row, for the direct path.
template <typename Format>
void quantise_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  auto* groups = reinterpret_cast<RowGroup*>(job.activations) + row * job.groups;
  const int64_t k = job.args->k;
  for (int64_t g = 0; g < job.groups; ++g) {
    const Quantised q = quantise_at<Format>(activation_row(job, row), k, g);
    store(groups[g].codes, q.low);
    store(groups[g].codes + 16, q.high);
    groups[g].scale = q.scale;
    groups[g].sum = q.sum;
  }
}

// out[i][r] = in[r][i] for 8 x 8 lanes of 32 bits.
inline void transpose8(const __m256i* in, void* out) {
  __m256i a[8];
  __m256i b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi32(in[2 * i], in[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi32(in[2 * i], in[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = _mm256_unpacklo_epi64(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm256_unpackhi_epi64(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm256_unpacklo_epi64(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm256_unpackhi_epi64(a[4 * i + 1], a[4 * i + 3]);
  }
  auto* rows = static_cast<__m256i*>(out);
  for (int i = 0; i < 4; ++i) {
    store(rows + i, _mm256_permute2x128_si256(b[i], b[i + 4], 0x20));
    store(rows + i + 4, _mm256_permute2x128_si256(b[i], b[i + 4], 0x31));
  }
}

// Task: 8 activation rows, for the tiled path.
template <typename Format>
void quantise_tile(void* argument, int64_t tile, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  auto* groups = reinterpret_cast<TileGroup*>(job.activations) + tile * job.groups;
  const int64_t first = tile * kTileRows;
  const int64_t k = job.args->k;
  const int64_t rows = smaller(kTileRows, job.args->rows - first);
  for (int64_t g = 0; g < job.groups; ++g) {
    __m256i low[kTileRows];
    __m256i high[kTileRows];
    for (int64_t r = 0; r < kTileRows; ++r) {
      Quantised q{_mm256_setzero_si256(), _mm256_setzero_si256(), 0, 0};
      if (r < rows) q = quantise_at<Format>(activation_row(job, first + r), k, g);
      low[r] = q.low;
      high[r] = q.high;
      groups[g].scales[r] = q.scale;
      groups[g].sums[r] = q.sum;
    }
    transpose8(low, groups[g].codes[0]);
    transpose8(high, groups[g].codes[8]);
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
