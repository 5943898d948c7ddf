// What a multiplying warp of gemv_mma.cuh does with the tiles of a stage: a lane's weights as
// operand registers, and a run of tiles times the rows of x.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_geometry.h"

namespace reckon::kernels::cuda {

template <int kColumns>
inline constexpr int n_tiles_for = n_tiles_of(kColumns);

__device__ __forceinline__ void mma_half(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// One lane's weights of a tile as loaded, and as operand registers of mma w.
template <TileType kType>
struct LaneTile;

template <>
struct LaneTile<TileType::kP4> {
  uint4 codes;
  uint2 scales;  // {scale, minimum} of row g, of row g + 8

  __device__ __forceinline__ void load(uint32_t tile, uint32_t lane) {
    codes = load_shared_16(tile + lane * 16);
    scales = load_shared_8(tile + 512 + (lane >> 2) * 8);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    const uint32_t low = w == 0 ? codes.x : w == 1 ? codes.y : w == 2 ? codes.z : codes.w;
    const uint32_t high = low >> 8;
    a[0] = low & 0x000f000fu;
    a[1] = high & 0x000f000fu;
    a[2] = low & 0x00f000f0u;
    a[3] = high & 0x00f000f0u;
  }
};

template <>
struct LaneTile<TileType::kP8> {
  uint4 codes[2];
  uint32_t scales;  // of row g, of row g + 8

  __device__ __forceinline__ void load(uint32_t tile, uint32_t lane) {
    codes[0] = load_shared_16(tile + lane * 16);
    codes[1] = load_shared_16(tile + 512 + lane * 16);
    scales = load_shared_4(tile + 1024 + (lane >> 2) * 4);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    const uint4& c = codes[w / 2];
    const uint32_t first = w % 2 == 0 ? c.x : c.z, second = w % 2 == 0 ? c.y : c.w;
    a[0] = first & 0x00ff00ffu;
    a[1] = (first >> 8) & 0x00ff00ffu;
    a[2] = second & 0x00ff00ffu;
    a[3] = (second >> 8) & 0x00ff00ffu;
  }
};

struct LaneTilePlain {
  uint4 weights[4];

  __device__ __forceinline__ void load(uint32_t tile, uint32_t lane) {
#pragma unroll
    for (int w = 0; w < 4; ++w) weights[w] = load_shared_16(tile + w * 512 + lane * 16);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    a[0] = weights[w].x, a[1] = weights[w].y, a[2] = weights[w].z, a[3] = weights[w].w;
  }
};
template <>
struct LaneTile<TileType::kF16> : LaneTilePlain {};
template <>
struct LaneTile<TileType::kBf16> : LaneTilePlain {};

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

// total += the scaled `sum` of a tile, for the lane's 4 results of each column group: (row g, x
// 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <TileType kType, int kColumns>
__device__ __forceinline__ void add_tile(const LaneTile<kType>& tile,
                                         const LaneMeta<kColumns>& meta,
                                         const float (&sum)[n_tiles_for<kColumns>][4],
                                         float (&total)[n_tiles_for<kColumns>][4]) {
  constexpr int kResultStep = kColumns == 1 ? 2 : 1;
#pragma unroll
  for (int nt = 0; nt < n_tiles_for<kColumns>; ++nt) {
    const float(&x_scale)[2] = meta.scale[nt];
    const float(&x_sum)[2] = meta.sum[nt];
    if constexpr (kType == TileType::kP4) {
      const float2 row[2] = {__half22float2(*reinterpret_cast<const __half2*>(&tile.scales.x)),
                             __half22float2(*reinterpret_cast<const __half2*>(&tile.scales.y))};
#pragma unroll
      for (int r = 0; r < 4; r += kResultStep) {
        const float shifted = __fmaf_rn(row[r / 2].y, x_sum[r % 2], total[nt][r]);
        total[nt][r] = __fmaf_rn(row[r / 2].x, __fmul_rn(x_scale[r % 2], sum[nt][r]), shifted);
      }
    } else if constexpr (kType == TileType::kP8) {
      const float2 scale = __half22float2(*reinterpret_cast<const __half2*>(&tile.scales));
#pragma unroll
      for (int r = 0; r < 4; r += kResultStep) {
        const float value = __fmaf_rn(x_scale[r % 2], sum[nt][r], -x_sum[r % 2]);
        total[nt][r] = __fmaf_rn(r / 2 ? scale.y : scale.x, value, total[nt][r]);
      }
    } else {
#pragma unroll
      for (int r = 0; r < 4; r += kResultStep) {
        total[nt][r] = __fmaf_rn(x_scale[r % 2], sum[nt][r], total[nt][r]);
      }
    }
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
