// How a block of gemv_mma.cuh brings its slice of x into shared memory, as operands of the mma.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/gemv_args.cuh"
#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_tile.cuh"

namespace reckon::kernels::cuda {

__device__ __forceinline__ float4 load_x(const GemvKernelArgs& args, const float* row, int column) {
  if (args.x_aligned && column + 3 < args.k) return *reinterpret_cast<const float4*>(row + column);
  float4 v;
  v.x = column < args.k ? row[column] : 0.0f;
  v.y = column + 1 < args.k ? row[column + 1] : 0.0f;
  v.z = column + 2 < args.k ? row[column + 2] : 0.0f;
  v.w = column + 3 < args.k ? row[column + 3] : 0.0f;
  return v;
}

__device__ __forceinline__ uint32_t bits_of(__half2 v) {
  return *reinterpret_cast<const uint32_t*>(&v);
}
__device__ __forceinline__ uint32_t bits_of(__nv_bfloat162 v) {
  return *reinterpret_cast<const uint32_t*>(&v);
}

// A lane's columns of a tile: 4t ... 4t + 3 of each 16, t = lane % 4. Four lanes so read 64
// neighbouring bytes at a time.
struct LaneColumns {
  float4 of16[4];
};

// Columns 16i + 4t ... + 3 as the sum of two bf16 each: the high halves at `to`, the low ones at
// `to` + `plane`.
__device__ __forceinline__ void store_split(float4 v, uint32_t to, uint32_t plane) {
  const __nv_bfloat162 a = __floats2bfloat162_rn(v.x, v.y), b = __floats2bfloat162_rn(v.z, v.w);
  const float2 fa = __bfloat1622float2(a), fb = __bfloat1622float2(b);
  store_shared_8(to, make_uint2(bits_of(a), bits_of(b)));
  store_shared_8(
      to + plane,
      make_uint2(bits_of(__floats2bfloat162_rn(__fsub_rn(v.x, fa.x), __fsub_rn(v.y, fa.y))),
                 bits_of(__floats2bfloat162_rn(__fsub_rn(v.z, fb.x), __fsub_rn(v.w, fb.y)))));
}

__device__ __forceinline__ float largest_of(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// Converts 64 columns of a row, 16 a lane of four, into operand halves at `to` (of the lane's first
// four; 32 bytes on for the next) and their {scale, sum} at `meta`. All 32 lanes call it; four
// without columns do not store.
template <TileType kType>
__device__ __forceinline__ void stage_columns(const LaneColumns& v, bool store, uint32_t to,
                                              uint32_t plane, uint32_t meta, uint32_t lane4) {
  if constexpr (kType == TileType::kBf16) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (store) store_split(v.of16[i], to + i * 32, plane);
    }
    return;
  }
  float largest = fmaxf(fmaxf(largest_of(v.of16[0]), largest_of(v.of16[1])),
                        fmaxf(largest_of(v.of16[2]), largest_of(v.of16[3])));
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
  // x * 2^(14 - e) with 2^e <= largest < 2^(e + 1): at most 2^15 after rounding to half.
  const int exponent = max(static_cast<int>(__float_as_uint(largest) >> 23), 40);
  const float down = __uint_as_float(static_cast<uint32_t>(268 - exponent) << 23);
  // The codes of columns 4t + 2 and 4t + 3 come 16 times too large (weight_tiles.h).
  constexpr bool kSixteenth = kType == TileType::kP4;
  const uint32_t ones[4] = {0x3c003c00u, 0x3c003c00u, kSixteenth ? 0x4c004c00u : 0x3c003c00u,
                            kSixteenth ? 0x4c004c00u : 0x3c003c00u};
  float sums[4] = {};  // of the columns of each four lanes, by a product with ones
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 f = v.of16[i];
    const uint32_t a = bits_of(__floats2half2_rn(__fmul_rn(f.x, down), __fmul_rn(f.y, down)));
    __half2 second = __floats2half2_rn(__fmul_rn(f.z, down), __fmul_rn(f.w, down));
    if constexpr (kSixteenth) second = __hmul2_rn(second, __half2half2(__float2half_rn(0.0625f)));
    const uint32_t b = bits_of(second);
    mma_half(sums, ones, a, b);
    if (store) store_shared_8(to + i * 32, make_uint2(a, b));
  }
  // Four lanes are a column of the product, whose rows are all alike: lane t of four 2t and 2t + 1
  // has the sums of just those.
  const uint32_t four = threadIdx.x / 4 % 8;
  if (store && lane4 == four / 2) {
    // Integer codes are half subnormals, c * 2^-24. A scale over float32 becomes infinite.
    const int code_exponent = kType == TileType::kF16 ? 0 : 24;
    const float up = __uint_as_float(static_cast<uint32_t>(exponent - 14) << 23);
    const int scale_exponent = min(exponent - 14 + code_exponent, 255);
    const float sum = four % 2 ? sums[1] : sums[0];
    const float x_sum = __fmul_rn(__fmul_rn(sum, up), kType == TileType::kP8 ? 128.0f : 1.0f);
    store_shared_8(meta,
                   make_uint2(static_cast<uint32_t>(scale_exponent) << 23, __float_as_uint(x_sum)));
  }
}

// Item i of a slice: its rows of a tile follow each other, so that the 8 items of a warp lie in
// different banks.
struct StageItems {
  int rows, count;
  uint32_t inverse;  // of rows, times 2^32

  __device__ __forceinline__ StageItems(int rows_in, int slice_tiles) {
    rows = rows_in;
    count = rows * slice_tiles;
    inverse = 0xffffffffu / static_cast<uint32_t>(rows) + 1;
  }
  __device__ __forceinline__ int tile(int item) const {
    return rows == 1 ? item : static_cast<int>(__umulhi(static_cast<uint32_t>(item), inverse));
  }
};

// The first kThreads threads convert the slab's rows of tiles slice_begin ... + slice_tiles - 1.
template <TileType kType, int kColumns, int kThreads>
__device__ __forceinline__ void stage_x(const GemvKernelArgs& args, const float* x, int rows,
                                        uint32_t shared, int slice_begin, int slice_tiles) {
  constexpr int kUnroll = kColumns == 16 ? 4 : 2;
  constexpr int kGroups = kThreads / 4;
  constexpr int kNTiles = n_tiles_for<kColumns>;
  const int lane4 = static_cast<int>(threadIdx.x % 4);
  const StageItems items(kColumns == 1 ? 1 : rows, slice_tiles);
  const int first = static_cast<int>(threadIdx.x / 4);
  // All lanes of a warp go round together: the shuffles want them.
  for (int base = 0; base < items.count; base += kUnroll * kGroups) {
    LaneColumns v[kUnroll];
    int row[kUnroll], tile[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int item = base + u * kGroups + first;
      tile[u] = items.tile(item);
      row[u] = item - tile[u] * items.rows;
      const int column = (slice_begin + tile[u]) * 64 + lane4 * 4;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        v[u].of16[i] = make_float4(0, 0, 0, 0);
        if (item < items.count) {
          v[u].of16[i] = load_x(args, x + row[u] * args.x_stride, column + i * 16);
        }
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (base + u * kGroups >= items.count) break;
      const int at = row[u] * args.shared.x_row + tile[u] * 128 + lane4 * 8;
      stage_columns<kType>(v[u], base + u * kGroups + first < items.count,
                           shared + args.shared.x + at, args.shared.x_plane,
                           shared + args.shared.meta + (tile[u] * 8 * kNTiles + row[u]) * 8,
                           static_cast<uint32_t>(lane4));
    }
  }
}

}  // namespace reckon::kernels::cuda
