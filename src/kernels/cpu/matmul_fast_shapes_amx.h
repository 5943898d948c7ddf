// One step of the fast matmul in each of its tile shapes (matmul_fast.h): four sums of 16 x 16
// stay in tile registers while a part of K passes.
//
// For files compiled for AMX alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set. Plain types only.
#pragma once

#include "kernels/cpu/matmul_fast_job_amx.h"

namespace reckon::kernels::cpu {
namespace {

// Each: sums (+)= kTokens tiles of 16 activation rows x kPanels panels over `tiles` tiles of K.
// x: [kTokens][tiles], weights: [kPanels][tiles], sums: [kTokens][kPanels], `next_rows` bytes
// between the sums of one tile of rows and of the next.
struct SquareTile {
  static constexpr int64_t kTokens = 2, kPanels = 2;
  static void multiply(const char* x, const char* weights, int64_t tiles, bool adds, char* sums,
                       int64_t next_rows) {
    multiply_tiles(x, weights, tiles, adds, sums, next_rows);
  }
};

// Sums 0 to 3 of the tile registers, `stride` bytes apart.
inline void load_sums(bool adds, const char* sums, int64_t stride) {
  if (adds) {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + stride, 64);
    _tile_loadd(2, sums + 2 * stride, 64);
    _tile_loadd(3, sums + 3 * stride, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
}

inline void store_sums(char* sums, int64_t stride) {
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + stride, 64);
  _tile_stored(2, sums + 2 * stride, 64);
  _tile_stored(3, sums + 3 * stride, 64);
}

struct TallTile {
  static constexpr int64_t kTokens = 1, kPanels = 4;
  static void multiply(const char* x, const char* weights, int64_t tiles, bool adds, char* sums,
                       int64_t /*next_rows*/) {
    const int64_t panel = tiles * kTileBytes;
    load_sums(adds, sums, kTileBytes);
    for (int64_t t = 0; t < tiles; ++t, x += kTileBytes, weights += kTileBytes) {
      _tile_loadd(4, x, 64);
      _tile_loadd(5, weights, 64);
      _tile_loadd(6, weights + panel, 64);
      _tile_dpbf16ps(0, 4, 5);
      _tile_loadd(7, weights + 2 * panel, 64);
      _tile_dpbf16ps(1, 4, 6);
      _tile_loadd(5, weights + 3 * panel, 64);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 4, 5);
    }
    store_sums(sums, kTileBytes);
  }
};

struct WideTile {
  static constexpr int64_t kTokens = 4, kPanels = 1;
  static void multiply(const char* x, const char* weights, int64_t tiles, bool adds, char* sums,
                       int64_t next_rows) {
    const int64_t rows = tiles * kTileBytes;
    load_sums(adds, sums, next_rows);
    for (int64_t t = 0; t < tiles; ++t, x += kTileBytes, weights += kTileBytes) {
      _tile_loadd(4, weights, 64);
      _tile_loadd(5, x, 64);
      _tile_loadd(6, x + rows, 64);
      _tile_dpbf16ps(0, 5, 4);
      _tile_loadd(7, x + 2 * rows, 64);
      _tile_dpbf16ps(1, 6, 4);
      _tile_loadd(5, x + 3 * rows, 64);
      _tile_dpbf16ps(2, 7, 4);
      _tile_dpbf16ps(3, 5, 4);
    }
    store_sums(sums, next_rows);
  }
};

}  // namespace
}  // namespace reckon::kernels::cpu
