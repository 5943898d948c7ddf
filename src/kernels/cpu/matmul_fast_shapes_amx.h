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
    const int64_t next = tiles * kTileBytes;
    start_sums(adds, sums, kTileBytes, next_rows);
    for (int64_t t = 0; t < tiles; ++t, x += kTileBytes, weights += kTileBytes) {
      _tile_loadd(4, x, 64);
      _tile_loadd(6, weights, 64);
      _tile_loadd(5, x + next, 64);
      _tile_loadd(7, weights + next, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    store_sums(sums, kTileBytes, next_rows);
  }
};

struct TallTile {
  static constexpr int64_t kTokens = 1, kPanels = 4;
  static void multiply(const char* x, const char* weights, int64_t tiles, bool adds, char* sums,
                       int64_t /*next_rows*/) {
    const int64_t panel = tiles * kTileBytes;
    start_sums(adds, sums, kTileBytes, 2 * kTileBytes);
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
    store_sums(sums, kTileBytes, 2 * kTileBytes);
  }
};

struct WideTile {
  static constexpr int64_t kTokens = 4, kPanels = 1;
  static void multiply(const char* x, const char* weights, int64_t tiles, bool adds, char* sums,
                       int64_t next_rows) {
    const int64_t rows = tiles * kTileBytes;
    start_sums(adds, sums, next_rows, 2 * next_rows);
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
    store_sums(sums, next_rows, 2 * next_rows);
  }
};

// Some panels of a thread's band x all activation rows, over tiles first ... end - 1 of K, which
// begin a part: the sums, [row tiles][band], lie behind the thread's weights.
template <typename Tile, typename Format>
void multiply_panels(const FastJob& job, int64_t first_panel, int64_t panels, int64_t first,
                     int64_t end, char* weights) {
  const auto* blocks = static_cast<const typename Format::Block*>(job.args->panels);
  const int64_t panel_blocks = job.k_tiles / Format::kGroups;
  char* sums = weights + job.outputs;
  configure_tiles();
  for (int64_t at = first; at < end; at += kPartTiles) {
    const int64_t tiles = part_tiles(job, at);
    for (int64_t p = 0; p < panels; ++p) {
      dequantise_panel<Format>(blocks + (first_panel + p) * panel_blocks, at, tiles,
                               weights + p * tiles * kTileBytes);
    }
    stores_before_tiles();
    for (int64_t row = 0; row < job.row_tiles; row += Tile::kTokens) {
      for (int64_t p = 0; p < panels; p += Tile::kPanels) {
        Tile::multiply(activation_tiles(job, at, row), weights + p * tiles * kTileBytes, tiles,
                       at > first, sums + (row * job.band + p) * kTileBytes, job.band * kTileBytes);
      }
    }
  }
  release_tiles();
}

}  // namespace
}  // namespace reckon::kernels::cpu
