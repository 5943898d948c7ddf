// The AVX2 matmul of integer formats: 8 weight rows straight from the file against a few activation
// rows, and tiles of unpacked weights against many.
//
// For matmul_exact_avx2.cpp alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_codes_avx2.h"
#include "kernels/cpu/matmul_common_avx2.h"
#include "kernels/cpu/matmul_formats_avx2.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

template <typename Format>
__m256i part_dots(const __m256i* u, const __m256i* x) {
  __m256i sum = _mm256_madd_epi16(u[0], x[0]);
  for (int i = 1; i < Format::kRegisters; ++i) add_dots(sum, u[i], x[i]);
  return sum;
}

// The dots of group kPart of one block of 8 weight rows with kRows activation rows `row_groups`
// apart.
template <typename Format, int kPart, int kRows>
void group_dots(const char* rows, int64_t stride, const RowGroup* groups, int64_t row_groups,
                __m256i* dots) {
  constexpr int kParts = Format::kParts;
  constexpr int kRegisters = Format::kRegisters;
  __m256i x[kRegisters];
  __m256i sums[kParts];
  if (kRows == 1) {  // multiplied while in registers
    Format::load_codes(groups->codes, x);
    for (int i = 0; i < kParts; ++i) {
      __m256i u[kRegisters];
      Format::template unpack<kPart>(rows, stride, i, u);
      sums[i] = part_dots<Format>(u, x);
    }
    dots[0] = Format::combine(sums);
    return;
  }
  __m256i u[kParts * kRegisters];
  for (int i = 0; i < kParts; ++i)
    Format::template unpack<kPart>(rows, stride, i, u + i * kRegisters);
  for (int r = 0; r < kRows; ++r) {
    Format::load_codes(groups[r * row_groups].codes, x);
    for (int i = 0; i < kParts; ++i) sums[i] = part_dots<Format>(u + i * kRegisters, x);
    dots[r] = Format::combine(sums);
  }
}

// Adds group kPart of one block of 8 weight rows to the sums of each activation row, after loading
// the block's scales and minima where it is the first.
template <typename Format, int kPart, int kRows>
void add_group(const char* block, int64_t stride, const RowGroup* groups, int64_t row_groups,
               __m256& scale, __m256& minimum, __m256* sums) {
  __m256i dots[kRows];
  group_dots<Format, kPart, kRows>(block, stride, groups, row_groups, dots);
  if (kPart == 0) Format::load_heads(block, stride, scale, minimum);
  for (int r = 0; r < kRows; ++r) {
    const RowGroup& group = groups[r * row_groups];
    sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[r]),
                              _mm256_mul_ps(scale, _mm256_broadcast_ss(&group.scale)), sums[r]);
    if (Format::kHasMinimum) {
      sums[r] = _mm256_fmadd_ps(minimum, _mm256_broadcast_ss(&group.sum), sums[r]);
    }
  }
}

// 8 weight rows, kRows activation rows (of `row_groups` groups each); out[r] holds 8 outputs.
template <typename Format, int kRows>
void direct_dots(const char* rows, int64_t stride, const RowGroup* groups, int64_t row_groups,
                 __m256* out) {
  __m256 totals[kRows];
  for (int r = 0; r < kRows; ++r) totals[r] = _mm256_setzero_ps();
  for (int64_t first = 0; first < row_groups; first += kSegmentGroups) {
    const int64_t end = smaller(first + kSegmentGroups, row_groups);
    __m256 sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = _mm256_setzero_ps();
    for (int64_t g = first; g < end; g += Format::kGroups) {
      const int64_t b = g / Format::kGroups;
      const char* block = rows + b * Format::kBytes;
      prefetch(rows + kDirectWeightRows * stride + b * kDirectWeightRows * Format::kBytes,
               kDirectWeightRows * Format::kBytes);
      __m256 scale;
      __m256 minimum;
      add_group<Format, 0, kRows>(block, stride, groups + g, row_groups, scale, minimum, sums);
      if (Format::kGroups == 2) {
        add_group<Format, Format::kGroups - 1, kRows>(block, stride, groups + g + 1, row_groups,
                                                      scale, minimum, sums);
      }
    }
    for (int r = 0; r < kRows; ++r) totals[r] = _mm256_add_ps(totals[r], sums[r]);
  }
  for (int r = 0; r < kRows; ++r) out[r] = totals[r];
}

// Task: 8 weight rows. The last group of a matrix reaches back to have 8, and stores only its own;
// a matrix of fewer than 8 rows goes one by one, each row standing for all 8.
template <typename Format, int kRows>
void multiply_direct(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  const auto* groups = reinterpret_cast<const RowGroup*>(job.activations);
  const int64_t first = task * kDirectWeightRows;
  const int64_t end = smaller(first + kDirectWeightRows, args.n);
  const bool alone = args.n < kDirectWeightRows;
  for (int64_t j = first; j < end; j = alone ? j + 1 : end) {
    const int64_t start = alone ? j : smaller(first, args.n - kDirectWeightRows);
    __m256 outputs[kRows];
    direct_dots<Format, kRows>(weight_row(job, start), alone ? 0 : job.row_stride, groups,
                               job.groups, outputs);
    for (int r = 0; r < kRows; ++r) {
      float* out = args.out + r * args.n;
      if (!alone && start == first) {
        _mm256_storeu_ps(out + start, outputs[r]);
        continue;
      }
      float lanes[8];
      _mm256_storeu_ps(lanes, outputs[r]);
      const int64_t stop = alone ? j + 1 : end;
      for (int64_t i = j; i < stop; ++i) out[i] = lanes[i - start];
    }
  }
}

// 4 weight rows x kTiles tiles of 8 activation rows: totals[t][w] holds 8 rows of weight row w.
// Two tiles make 8 integer accumulators and 6 loads for 16 instructions of arithmetic, which keeps
// all three vector ports busy; one tile was bound by the front end, at two thirds of the speed.
template <bool kHasMinimum, int kTiles>
void panel_dots(const PanelBlock* panel, const TileGroup* tiles, int64_t groups,
                __m256 (*totals)[kPanelRows]) {
  for (int t = 0; t < kTiles; ++t) {
    for (int w = 0; w < kPanelRows; ++w) totals[t][w] = _mm256_setzero_ps();
  }
  for (int64_t first = 0; first < groups; first += kSegmentGroups) {
    const int64_t end = smaller(first + kSegmentGroups, groups);
    __m256 sums[kTiles][kPanelRows];
    for (int t = 0; t < kTiles; ++t) {
      for (int w = 0; w < kPanelRows; ++w) sums[t][w] = _mm256_setzero_ps();
    }
    for (int64_t g = first; g < end; ++g) {
      const PanelBlock& weights = panel[g];
      __m256i dots[kTiles][kPanelRows];
      for (int t = 0; t < kTiles; ++t) {
        for (int w = 0; w < kPanelRows; ++w) dots[t][w] = _mm256_setzero_si256();
      }
#pragma GCC unroll 16
      for (int p = 0; p < 16; ++p) {
        __m256i x[kTiles];
        for (int t = 0; t < kTiles; ++t) x[t] = load(tiles[t * groups + g].codes[p]);
        for (int w = 0; w < kPanelRows; ++w) {
          int32_t pair;
          __builtin_memcpy(&pair, weights.codes[w] + 2 * p, sizeof pair);
          const __m256i pairs = _mm256_set1_epi32(pair);
          for (int t = 0; t < kTiles; ++t) add_dots(dots[t][w], pairs, x[t]);
        }
      }
      for (int t = 0; t < kTiles; ++t) {
        const TileGroup& group = tiles[t * groups + g];
        const __m256 scales = _mm256_loadu_ps(group.scales);
        for (int w = 0; w < kPanelRows; ++w) {
          const __m256 scale = _mm256_mul_ps(_mm256_broadcast_ss(&weights.scales[w]), scales);
          sums[t][w] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[t][w]), scale, sums[t][w]);
          if (kHasMinimum) {
            sums[t][w] = _mm256_fmadd_ps(_mm256_broadcast_ss(&weights.minima[w]),
                                         _mm256_loadu_ps(group.sums), sums[t][w]);
          }
        }
      }
    }
    for (int t = 0; t < kTiles; ++t) {
      for (int w = 0; w < kPanelRows; ++w) {
        totals[t][w] = _mm256_add_ps(totals[t][w], sums[t][w]);
      }
    }
  }
}

// Stores totals[w][r] to out[r * n + w] for r < rows and w < weights.
void store_panel(const __m256* totals, float* out, int64_t n, int64_t rows, int64_t weights) {
  const __m256 a = _mm256_unpacklo_ps(totals[0], totals[1]);
  const __m256 b = _mm256_unpackhi_ps(totals[0], totals[1]);
  const __m256 c = _mm256_unpacklo_ps(totals[2], totals[3]);
  const __m256 d = _mm256_unpackhi_ps(totals[2], totals[3]);
  const __m256 r0 = _mm256_shuffle_ps(a, c, 0x44);
  const __m256 r1 = _mm256_shuffle_ps(a, c, 0xee);
  const __m256 r2 = _mm256_shuffle_ps(b, d, 0x44);
  const __m256 r3 = _mm256_shuffle_ps(b, d, 0xee);
  const __m128 values[kTileRows] = {_mm256_castps256_ps128(r0),   _mm256_castps256_ps128(r1),
                                    _mm256_castps256_ps128(r2),   _mm256_castps256_ps128(r3),
                                    _mm256_extractf128_ps(r0, 1), _mm256_extractf128_ps(r1, 1),
                                    _mm256_extractf128_ps(r2, 1), _mm256_extractf128_ps(r3, 1)};
  for (int64_t r = 0; r < rows; ++r) {
    if (weights == kPanelRows) {
      _mm_storeu_ps(out + r * n, values[r]);
    } else {
      float lanes[kPanelRows];
      _mm_storeu_ps(lanes, values[r]);
      for (int64_t w = 0; w < weights; ++w) out[r * n + w] = lanes[w];
    }
  }
}

// The tiled path of integer formats, as tiles() below wants it.
template <typename Format>
struct IntegerTiles {
  template <int kPart>
  static void unpack_group(const char* block, PanelBlock& panel, int64_t w) {
    Format::template unpack_block<kPart>(block, panel.codes[w], &panel.scales[w], &panel.minima[w]);
  }

  static int64_t tile_bytes(const Job& job) {
    return kWeightTile / kPanelRows * job.groups * static_cast<int64_t>(sizeof(PanelBlock));
  }

  static void unpack(const Job& job, int64_t first_row, int64_t rows, char* memory) {
    auto* panel = reinterpret_cast<PanelBlock*>(memory);
    for (int64_t j = 0; j < rows; ++j) {
      PanelBlock* groups = panel + j / kPanelRows * job.groups;
      const char* row = weight_row(job, first_row + j);
      const int64_t w = j % kPanelRows;
      for (int64_t g = 0; g < job.groups; g += Format::kGroups) {
        const char* block = row + g / Format::kGroups * Format::kBytes;
        unpack_group<0>(block, groups[g], w);
        if (Format::kGroups == 2) unpack_group<Format::kGroups - 1>(block, groups[g + 1], w);
      }
    }
  }

  static void multiply(const Job& job, const char* memory, int64_t first_weight, int64_t weights,
                       int64_t first_row, int64_t rows) {
    const auto* panels = reinterpret_cast<const PanelBlock*>(memory);
    const auto* tiles = reinterpret_cast<const TileGroup*>(job.activations);
    const int64_t n = job.args->n;
    for (int64_t r = 0; r < rows; r += 2 * kTileRows) {
      const TileGroup* tile = tiles + (first_row + r) / kTileRows * job.groups;
      const int64_t taken = rows - r > kTileRows ? 2 : 1;
      for (int64_t w = 0; w < weights; w += kPanelRows) {
        const PanelBlock* panel = panels + w / kPanelRows * job.groups;
        float* out = job.args->out + (first_row + r) * n + first_weight + w;
        __m256 totals[2][kPanelRows];
        if (taken == 2) {
          panel_dots<Format::kHasMinimum, 2>(panel, tile, job.groups, totals);
        } else {
          panel_dots<Format::kHasMinimum, 1>(panel, tile, job.groups, totals);
        }
        for (int64_t t = 0; t < taken; ++t) {
          store_panel(totals[t], out + t * kTileRows * n, n,
                      smaller(kTileRows, rows - r - t * kTileRows),
                      smaller(kPanelRows, weights - w));
        }
      }
    }
  }
};

}  // namespace
}  // namespace reckon::kernels::cpu
