// Which blocks a gemv_mma launch runs and what lies where in their shared memory. Plain C++, shared
// by the launch code, the kernels (gemv_mma.cuh) and their tests.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemv.h"

#ifdef __CUDACC__
#define RECKON_HOST_DEVICE __host__ __device__
#else
#define RECKON_HOST_DEVICE
#endif

namespace reckon::kernels::cuda {

inline constexpr int kGemvWarps = kGemvSegments;  // that multiply
inline constexpr int kCombineWarp = kGemvWarps;   // adds segments and stores results
inline constexpr int kCopyWarp = kGemvWarps + 1;  // and the next: fetch weights for the others
inline constexpr int kCopyWarps = 2;
inline constexpr int kRingsOfCopyWarp = kGemvWarps / kCopyWarps;
inline constexpr int kGemvThreads = (kCopyWarp + kCopyWarps) * 32;
inline constexpr int kGemvPartialSlots = 2;  // strips whose partial sums may wait to be combined

template <TileType kType>
inline constexpr int kTileBytesOf = static_cast<int>(tile_bytes(kType));

// Rows of x that a kernel instance takes: 1, 8 or 16.
constexpr int columns_for(int rows) {
  return rows == 1 ? 1 : rows <= 8 ? 8 : 16;
}
// Column groups of an mma (8 rows of x) behind them.
constexpr int n_tiles_of(int columns) {
  return columns <= 8 ? 1 : 2;
}

// Strips that a multiplying warp takes at once, reading x for all of them.
constexpr int strips_together(TileType type, int columns) {
  return type == TileType::kP4 && columns == 16 ? 2 : 1;
}

// First tile of segment s (s = kGemvSegments: one past the last) of a K of `tiles` tiles. Part of
// the canonical order.
RECKON_HOST_DEVICE constexpr int segment_begin(int s, int tiles) {
  return static_cast<int>(int64_t{s} * tiles / kGemvSegments);
}

// Shared memory of one block, in bytes from its start. Rows of x are a slice of K: the segments of
// this block's rank in its cluster.
struct GemvShared {
  int stage = 0;     // bytes of one warp's stage: [strips together, tiles]; the ring [slots, warps,
                     // stage] is at 0
  int x_row = 0;     // bytes between rows of x; 16 modulo 128, so that 8 rows share no bank
  int x_plane = 0;   // between the high and the low bf16 halves
  int x = 0;         // [planes, rows, x_row]
  int meta = 0;      // [tiles of the slice, 8 * n_tiles] of {scale, sum} float2
  int partials = 0;  // [partial slots, segments, n_tiles, 32] float4
  int barriers = 0;  // [slots, warps] stage arrived, [slots] stage read, [partial slots] partial
                     // sums arrived, [partial slots] partial sums read, x read
  int bytes = 0;
};

constexpr bool has_meta(TileType type) {
  return type != TileType::kBf16;
}

// slice_tiles: the widest slice of K in the cluster.
constexpr GemvShared gemv_shared(TileType type, int rows, int slice_tiles, int stage_tiles,
                                 int slots) {
  const int columns = columns_for(rows), n_tiles = n_tiles_of(columns);
  GemvShared s;
  s.stage = strips_together(type, columns) * stage_tiles * static_cast<int>(tile_bytes(type));
  s.x = kGemvWarps * slots * s.stage;
  s.x_row = slice_tiles * 128 + 16;
  s.x_plane = rows * s.x_row;
  s.meta = s.x + s.x_plane * (type == TileType::kBf16 ? 2 : 1);
  s.partials = s.meta + (has_meta(type) ? slice_tiles * 8 * n_tiles * 8 : 0);
  s.barriers = s.partials + kGemvPartialSlots * kGemvSegments * n_tiles * 512;
  s.bytes = s.barriers + ((kGemvWarps + 1) * slots + 2 * kGemvPartialSlots + 1) * 8;
  return s;
}

// The most tiles of a segment.
constexpr int widest_segment(int tiles) {
  return (tiles + kGemvSegments - 1) / kGemvSegments;
}

// The widest slice of K in a cluster, in tiles.
constexpr int widest_slice(int cluster, int tiles) {
  const int step = kGemvSegments / cluster;
  int widest = 0;
  for (int s = 0; s < kGemvSegments; s += step) {
    const int width = segment_begin(s + step, tiles) - segment_begin(s, tiles);
    widest = width > widest ? width : widest;
  }
  return widest;
}

// A launch, decided. `slab_rows` is 16, or less where K is so long that 16 rows of x do not fit.
struct GemvGeometry {
  bool fits = false;
  GemvTuning tuning;
  int slab_rows = 0;
  int stages = 0;  // copies a segment
  int blocks = 0;  // grid x, a multiple of the cluster; grid y is rows / slab_rows, rounded up
  GemvShared shared;
};

// Shared memory that a block may take so that `blocks` of them are resident at once.
[[nodiscard]] int64_t block_share(const GemvDevice& device, int blocks);

// `units`: strips to compute in all (strips of one of the two weights for SwiGLU).
[[nodiscard]] GemvGeometry gemv_geometry(const GemvDevice& device, TileType type, int64_t rows,
                                         int64_t k, int64_t units, const GemvTuning& tuning);

}  // namespace reckon::kernels::cuda
