// What matmuls by AMX tiles of bfloat16 share: activations as tiles, and sums that become rows of
// outputs; matmul_fast_shapes_amx.h multiplies.
//
// For files compiled for AMX and AVX-512 BF16 alone; the namespace has no name so that nothing in
// it can be shared with code for another instruction set. Plain types only.
#pragma once

#include "kernels/cpu/dequantise_amx.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/tiles_amx.h"

namespace reckon::kernels::cpu {
namespace {

struct FastJob {
  const MatmulArgs* args;
  char* activations;  // tiles [parts of K][row tiles][tiles of the part]
  char* threads;      // each: weight tiles [band][tiles of the part], sums [row tiles][band]
  uint64_t thread_bytes, outputs;
  int64_t band;       // panels
  int64_t row_tiles;  // of 16 rows, whole steps of the tile shape
  int64_t k_tiles;
};

// `memory`: of the layout's total.
inline FastJob fast_job(const MatmulArgs& args, const FastMatmulScratch& layout, char* memory) {
  FastJob job{};
  job.args = &args;
  job.activations = memory;
  job.threads = memory + layout.threads;
  job.thread_bytes = layout.thread_bytes;
  job.outputs = layout.outputs;
  job.band = layout.band_panels;
  job.row_tiles = layout.row_tiles;
  job.k_tiles = args.k / kTileColumns;
  return job;
}

inline int64_t bands_of(const FastJob& job) {
  return divide_up(divide_up(job.args->n, kTileSide), job.band);
}

inline int64_t part_tiles(const FastJob& job, int64_t first) {
  return smaller(kPartTiles, job.k_tiles - first);
}

// Tiles of the part of K that begins with tile `first`, of row tile `row`.
inline char* activation_tiles(const FastJob& job, int64_t first, int64_t row) {
  return job.activations + (first * job.row_tiles + row * part_tiles(job, first)) * kTileBytes;
}

// Task: 16 activation rows to tiles; rows beyond the last are zeros.
inline void convert_rows(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const FastJob*>(argument);
  const int64_t k = job.args->k;
  for (int64_t r = 0; r < kTileSide; ++r) {
    const int64_t row = task * kTileSide + r;
    const bool real = row < job.args->rows;
    const float* x = job.args->x + (real ? row : 0) * k;
    for (int64_t first = 0; first < job.k_tiles; first += kPartTiles) {
      char* out = activation_tiles(job, first, task) + r * 64;
      const int64_t tiles = part_tiles(job, first);
      for (int64_t t = 0; t < tiles; ++t, out += kTileBytes) {
        const float* from = x + (first + t) * kTileColumns;
        _mm512_storeu_si512(out,
                            real ? to_bfloat16(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16))
                                 : _mm512_setzero_si512());
      }
    }
  }
}

// The sums of a band to the output's rows.
inline void store_band(const FastJob& job, const char* sums, int64_t first_panel, int64_t panels) {
  const MatmulArgs& args = *job.args;
  for (int64_t row = 0; row < args.rows; ++row) {
    const char* from = sums + row / kTileSide * job.band * kTileBytes + row % kTileSide * 64;
    float* out = args.out + row * args.n;
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t column = (first_panel + p) * kTileSide;
      _mm512_mask_storeu_ps(out + column, first_lanes(args.n - column),
                            _mm512_loadu_ps(from + p * kTileBytes));
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
