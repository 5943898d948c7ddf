// What matmuls by AMX tiles of bfloat16 share: activations as tiles, the multiplication of tiles,
// and sums that become rows of outputs.
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

// sums (+)= 32 activation rows x 2 panels over `tiles` tiles of K. sums[0], [1]: the first 16 rows
// by each panel; `next_rows` bytes on: the second 16.
inline void multiply_tiles(const char* x, const char* weights, int64_t tiles, bool adds, char* sums,
                           int64_t next_rows) {
  if (adds) {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + kTileBytes, 64);
    _tile_loadd(2, sums + next_rows, 64);
    _tile_loadd(3, sums + next_rows + kTileBytes, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const char* x_end = x + tiles * kTileBytes;
  const char* second_weights = weights + tiles * kTileBytes;
  for (int64_t t = 0; t < tiles; ++t) {
    _tile_loadd(4, x + t * kTileBytes, 64);
    _tile_loadd(6, weights + t * kTileBytes, 64);
    _tile_loadd(5, x_end + t * kTileBytes, 64);
    _tile_loadd(7, second_weights + t * kTileBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileBytes, 64);
  _tile_stored(2, sums + next_rows, 64);
  _tile_stored(3, sums + next_rows + kTileBytes, 64);
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
