// What a multiplying warp of gemv_mma.cuh does with the tiles of a stage: a run of tiles times the
// rows of x.
#pragma once

#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_geometry.h"
#include "kernels/cuda/lane_tile.cuh"

namespace reckon::kernels::cuda {

template <int kColumns>
inline constexpr int n_tiles_for = n_tiles_of(kColumns);

// Where a lane finds its operands of x for a tile: rows g and g + 8, columns 16t ... 16t + 15, and
// the {scale, sum} of rows 2t and 2t + 1.
template <int kNTiles>
struct LaneX {
  uint32_t row[kNTiles];
  uint32_t plane;
  uint32_t meta;

  __device__ __forceinline__ void advance(int tiles) {
#pragma unroll
    for (int nt = 0; nt < kNTiles; ++nt) row[nt] += tiles * 128;
    meta += tiles * (64 * kNTiles);
  }
};

// A lane's {scale, sum} of x for a tile. With one row of x nobody wants the odd results.
template <int kColumns>
struct LaneMeta {
  float scale[n_tiles_for<kColumns>][2], sum[n_tiles_for<kColumns>][2];

  __device__ __forceinline__ explicit LaneMeta(uint32_t meta) {
#pragma unroll
    for (int nt = 0; nt < n_tiles_for<kColumns>; ++nt) {
      if constexpr (kColumns == 1) {
        const uint2 bits = load_shared_8(meta);
        scale[nt][0] = __uint_as_float(bits.x), sum[nt][0] = __uint_as_float(bits.y);
      } else {
        const uint4 bits = load_shared_16(meta + nt * 64);
        scale[nt][0] = __uint_as_float(bits.x), sum[nt][0] = __uint_as_float(bits.y);
        scale[nt][1] = __uint_as_float(bits.z), sum[nt][1] = __uint_as_float(bits.w);
      }
    }
  }
};

// total += the scaled `sum` of a tile, for each column group.
template <TileType kType, int kColumns>
__device__ __forceinline__ void add_tile(const LaneTile<kType>& tile,
                                         const LaneMeta<kColumns>& meta,
                                         const float (&sum)[n_tiles_for<kColumns>][4],
                                         float (&total)[n_tiles_for<kColumns>][4]) {
#pragma unroll
  for (int nt = 0; nt < n_tiles_for<kColumns>; ++nt) {
    add_scaled<kType, kColumns == 1 ? 2 : 1>(tile, meta.scale[nt], meta.sum[nt], sum[nt],
                                             total[nt]);
  }
}

// total += a bf16 tile * x, `index` tiles on from where x stands: the high halves of x and the low.
template <int kNTiles>
__device__ __forceinline__ void multiply_split(const LaneTile<TileType::kBf16>& tile,
                                               const LaneX<kNTiles>& x, int index,
                                               float (&total)[kNTiles][4]) {
  uint4 high[kNTiles][2], low[kNTiles][2];
#pragma unroll
  for (int nt = 0; nt < kNTiles; ++nt) {
    const uint32_t at = x.row[nt] + index * 128;
    high[nt][0] = load_shared_16(at), high[nt][1] = load_shared_16(at + 16);
    low[nt][0] = load_shared_16(at + x.plane), low[nt][1] = load_shared_16(at + x.plane + 16);
  }
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    uint32_t a[4];
    tile.operand(w, a);
#pragma unroll
    for (int nt = 0; nt < kNTiles; ++nt) {
      const uint4 &h = high[nt][w / 2], &l = low[nt][w / 2];
      mma_bf16(total[nt], a, w % 2 ? h.z : h.x, w % 2 ? h.w : h.y);
      mma_bf16(total[nt], a, w % 2 ? l.z : l.x, w % 2 ? l.w : l.y);
    }
  }
}

// total += kCount tiles * x of each of kStrips strips, `strip_bytes` apart, tile by tile. The mma
// chains of the tiles are interleaved; each is summed by itself. x is read once for all strips.
template <TileType kType, int kColumns, int kStrips, int kCount>
__device__ __forceinline__ void multiply_tiles(uint32_t stage, uint32_t strip_bytes, uint32_t lane,
                                               const LaneX<n_tiles_for<kColumns>>& x,
                                               float (&total)[kStrips][n_tiles_for<kColumns>][4]) {
  constexpr int kNTiles = n_tiles_for<kColumns>;
  LaneTile<kType> tile[kStrips][kCount];
#pragma unroll
  for (int j = 0; j < kStrips * kCount; ++j) {
    const int s = j / kCount, i = j % kCount;
    tile[s][i].load(stage + s * strip_bytes + i * kTileBytesOf<kType>, lane);
  }
  if constexpr (kType == TileType::kBf16) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) multiply_split<kNTiles>(tile[0][i], x, i, total[0]);
    return;
  }
  float sum[kStrips][kCount][kNTiles][4] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint4 b[kCount][kNTiles];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
        b[i][nt] = load_shared_16(x.row[nt] + i * 128 + half * 16);
      }
    }
#pragma unroll
    for (int w = 2 * half; w < 2 * half + 2; ++w) {
#pragma unroll
      for (int j = 0; j < kStrips * kCount; ++j) {
        const int s = j / kCount, i = j % kCount;
        uint32_t a[4];
        tile[s][i].operand(w, a);
#pragma unroll
        for (int nt = 0; nt < kNTiles; ++nt) {
          const uint4& v = b[i][nt];
          mma_half(sum[s][i][nt], a, w % 2 ? v.z : v.x, w % 2 ? v.w : v.y);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const LaneMeta<kColumns> meta(x.meta + i * (64 * kNTiles));
#pragma unroll
    for (int s = 0; s < kStrips; ++s) {
      add_tile<kType, kColumns>(tile[s][i], meta, sum[s][i], total[s]);
    }
  }
}

// K tiles whose mma chains are interleaved.
template <TileType kType, int kColumns>
inline constexpr int kTogether = kTileBytesOf<kType> >= 2048
                                     ? 1
                                     : (kType == TileType::kP4 ? 4 : 2) / n_tiles_for<kColumns> /
                                           strips_together(kType, kColumns);

// total += `count` tiles * x of each strip, kCount at a time and then fewer.
template <TileType kType, int kColumns, int kStrips, int kCount>
__device__ __forceinline__ void multiply_run(uint32_t stage, uint32_t strip_bytes, int count,
                                             uint32_t lane, LaneX<n_tiles_for<kColumns>>& x,
                                             float (&total)[kStrips][n_tiles_for<kColumns>][4]) {
  for (; count >= kCount; count -= kCount) {
    multiply_tiles<kType, kColumns, kStrips, kCount>(stage, strip_bytes, lane, x, total);
    x.advance(kCount);
    stage += kCount * kTileBytesOf<kType>;
  }
  if constexpr (kCount > 1) {
    multiply_run<kType, kColumns, kStrips, kCount / 2>(stage, strip_bytes, count, lane, x, total);
  }
}

}  // namespace reckon::kernels::cuda
