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

// A lane's 16 columns, 2 a word.
__device__ __forceinline__ void store_operands(uint32_t to, const uint32_t (&words)[2][4]) {
  store_shared_16(to, words[0]);
  store_shared_16(to + 16, words[1]);
}

// 16 columns as the sum of two bf16 each: the high halves at `to`, the low ones at `to` + `plane`.
__device__ __forceinline__ void store_split(const float4 (&v)[4], uint32_t to, uint32_t plane) {
  uint32_t high[2][4], low[2][4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float in[8] = {v[2 * i].x,     v[2 * i].y,     v[2 * i].z,     v[2 * i].w,
                         v[2 * i + 1].x, v[2 * i + 1].y, v[2 * i + 1].z, v[2 * i + 1].w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const __nv_bfloat16 a = __float2bfloat16_rn(in[2 * j]);
      const __nv_bfloat16 b = __float2bfloat16_rn(in[2 * j + 1]);
      high[i][j] = bits_of(__halves2bfloat162(a, b));
      low[i][j] = bits_of(__floats2bfloat162_rn(__fsub_rn(in[2 * j], __bfloat162float(a)),
                                                __fsub_rn(in[2 * j + 1], __bfloat162float(b))));
    }
  }
  store_operands(to, high);
  store_operands(to + plane, low);
}

__device__ __forceinline__ float largest_of(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// Converts 64 columns of a row, 16 a lane of four, into operand halves at `to` (this lane's) and
// their {scale, sum} at `meta`. All 32 lanes call it; four without columns do not store.
template <TileType kType>
__device__ __forceinline__ void stage_columns(const float4 (&v)[4], bool store, uint32_t to,
                                              uint32_t plane, uint32_t meta, uint32_t lane4) {
  if constexpr (kType == TileType::kBf16) {
    if (store) store_split(v, to, plane);
    return;
  }
  float largest =
      fmaxf(fmaxf(largest_of(v[0]), largest_of(v[1])), fmaxf(largest_of(v[2]), largest_of(v[3])));
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
  // x * 2^(14 - e) with 2^e <= largest < 2^(e + 1): at most 2^15 after rounding to half.
  const int exponent = max(static_cast<int>(__float_as_uint(largest) >> 23), 40);
  const float down = __uint_as_float(static_cast<uint32_t>(268 - exponent) << 23);
  uint32_t operand[2][4];
  float sums[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __half2 a = __floats2half2_rn(__fmul_rn(v[i].x, down), __fmul_rn(v[i].y, down));
    const __half2 b = __floats2half2_rn(__fmul_rn(v[i].z, down), __fmul_rn(v[i].w, down));
    const float2 fa = __half22float2(a), fb = __half22float2(b);
    sums[i] = __fadd_rn(__fadd_rn(fa.x, fa.y), __fadd_rn(fb.x, fb.y));
    operand[i / 2][i % 2 * 2] = bits_of(a);
    // The codes of columns 4i + 2 and 4i + 3 come 16 times too large (weight_tiles.h).
    operand[i / 2][i % 2 * 2 + 1] =
        bits_of(kType == TileType::kP4 ? __floats2half2_rn(fb.x * 0.0625f, fb.y * 0.0625f) : b);
  }
  float sum = __fadd_rn(__fadd_rn(sums[0], sums[1]), __fadd_rn(sums[2], sums[3]));
  sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 1));
  sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 2));
  if (!store) return;
  store_operands(to, operand);
  if (lane4 == 0) {
    // Integer codes are half subnormals, c * 2^-24. A scale over float32 becomes infinite.
    const int code_exponent = kType == TileType::kF16 ? 0 : 24;
    const float up = __uint_as_float(static_cast<uint32_t>(exponent - 14) << 23);
    const int scale_exponent = min(exponent - 14 + code_exponent, 255);
    const float x_sum = __fmul_rn(__fmul_rn(sum, up), kType == TileType::kP8 ? 128.0f : 1.0f);
    store_shared_8(meta,
                   make_uint2(static_cast<uint32_t>(scale_exponent) << 23, __float_as_uint(x_sum)));
  }
}

// The first kThreads threads convert the slab's rows of tiles slice_begin ... + slice_tiles - 1.
template <TileType kType, int kColumns, int kThreads>
__device__ __forceinline__ void stage_x(const GemvKernelArgs& args, const float* x, int rows,
                                        uint32_t shared, int slice_begin, int slice_tiles) {
  constexpr int kUnroll = 2;  // more wait no less: 3 and 4 are 1% and 4% slower where K is long
  constexpr int kGroups = kThreads / 4;
  constexpr int kNTiles = n_tiles_for<kColumns>;
  const int lane4 = static_cast<int>(threadIdx.x % 4);
  const int items = rows * slice_tiles;
  const int first = static_cast<int>(threadIdx.x / 4);
  // All lanes of a warp go round together: the shuffles want them.
  for (int base = 0; base < items; base += kUnroll * kGroups) {
    float4 v[kUnroll][4];
    int row[kUnroll], tile[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int item = base + u * kGroups + first;
      row[u] = kColumns == 1 ? 0 : item / slice_tiles;
      tile[u] = item - row[u] * slice_tiles;
      const int column = (slice_begin + tile[u]) * 64 + lane4 * 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        v[u][i] = make_float4(0, 0, 0, 0);
        if (item < items) v[u][i] = load_x(args, x + row[u] * args.x_stride, column + i * 4);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (base + u * kGroups >= items) break;
      const int at = row[u] * args.shared.x_row + tile[u] * 128 + lane4 * 32;
      stage_columns<kType>(v[u], base + u * kGroups + first < items, shared + args.shared.x + at,
                           args.shared.x_plane,
                           shared + args.shared.meta + (tile[u] * 8 * kNTiles + row[u]) * 8,
                           static_cast<uint32_t>(lane4));
    }
  }
}

}  // namespace reckon::kernels::cuda
