// The arithmetic of the exact matmuls with float32 activations, shared by the plain one and that of
// experts, so that both give the same bits: what a lane does with a tile, and how the sums of lanes
// and segments are added up. A warp takes a segment of a strip, each lane the 32 weights of a tile
// that it owns (weight_tiles.h): columns 16 (lane % 4) ... + 15 of rows lane / 4 and that + 8.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/gemv.h"
#include "kernels/cuda/gemv_async.cuh"

namespace reckon::kernels::cuda {

__device__ __forceinline__ uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// weights[row half][column]: the lane's weights of rows g and g + 8, columns 16t ... 16t + 15.
template <TileType kType>
__device__ __forceinline__ void load_weights(const uint8_t* tile, int lane, float (&w)[2][16]) {
  if constexpr (kType == TileType::kP4) {
    const uint4 codes = stream_16(tile + lane * 16);
    const uint2 scales = *reinterpret_cast<const uint2*>(tile + 512 + lane / 4 * 8);
    const float2 row[2] = {__half22float2(*reinterpret_cast<const __half2*>(&scales.x)),
                           __half22float2(*reinterpret_cast<const __half2*>(&scales.y))};
#pragma unroll
    for (int slot = 0; slot < kTileSlots; ++slot) {
      const int r = slot / 2 % 4, h = slot % 2;
      const uint32_t code = word_of(codes, slot / 8) >> (4 * (2 * (r & 1) + (r >> 1) + 4 * h)) & 15;
      w[r & 1][slot / 8 * 4 + (r >> 1) * 2 + h] =
          __fmaf_rn(row[r & 1].x, static_cast<float>(code), row[r & 1].y);
    }
  } else if constexpr (kType == TileType::kP8) {
    const uint4 codes[2] = {stream_16(tile + lane * 16), stream_16(tile + 512 + lane * 16)};
    const uint32_t bits = *reinterpret_cast<const uint32_t*>(tile + 1024 + lane / 4 * 4);
    const float2 scale = __half22float2(*reinterpret_cast<const __half2*>(&bits));
#pragma unroll
    for (int slot = 0; slot < kTileSlots; ++slot) {
      const int m = slot / 8, r = slot / 2 % 4, h = slot % 2;
      const uint32_t word = word_of(codes[m / 2], m % 2 * 2 + (r >> 1));
      const int code = static_cast<int>(word >> (8 * ((r & 1) + 2 * h)) & 255) - 128;
      w[r & 1][m * 4 + (r >> 1) * 2 + h] =
          __fmul_rn(r & 1 ? scale.y : scale.x, static_cast<float>(code));
    }
  } else if constexpr (kType == TileType::kF32) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint4 v = stream_16(tile + i * 512 + lane * 16);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        w[j / 2][i / 2 * 4 + i % 2 * 2 + j % 2] = __uint_as_float(word_of(v, j));
      }
    }
  } else {
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const uint4 v = stream_16(tile + m * 512 + lane * 16);
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const uint32_t bits = word_of(v, r);
        float2 pair;
        if constexpr (kType == TileType::kF16) {
          pair = __half22float2(*reinterpret_cast<const __half2*>(&bits));
        } else {
          pair = make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
        }
        w[r & 1][m * 4 + (r >> 1) * 2] = pair.x;
        w[r & 1][m * 4 + (r >> 1) * 2 + 1] = pair.y;
      }
    }
  }
}

// sum[row half][r] += the lane's weights of a tile times its columns of row r, for r < rows;
// load(r, column) gives columns column ... + 3 of the tile, zeros beyond k.
template <TileType kType, int kRows, typename Load>
__device__ __forceinline__ void multiply_tile(const uint8_t* tile, int lane, int rows,
                                              float (&sum)[2][kRows], const Load& load) {
  float w[2][16];
  load_weights<kType>(tile, lane, w);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= rows) break;
#pragma unroll
    for (int c = 0; c < 16; c += 4) {
      const float4 v = load(r, lane % 4 * 16 + c);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float s = sum[half][r];
        s = __fmaf_rn(v.x, w[half][c], s);
        s = __fmaf_rn(v.y, w[half][c + 1], s);
        s = __fmaf_rn(v.z, w[half][c + 2], s);
        sum[half][r] = __fmaf_rn(v.w, w[half][c + 3], s);
      }
    }
  }
}

// A warp's sums of its segment: the four lanes of a row of the strip by xor 1, 2.
template <int kRows>
__device__ __forceinline__ void store_partials(const float (&sum)[2][kRows], int lane,
                                               float (&partials)[kRows][kTileRows]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float s = sum[half][r];
      s = __fadd_rn(s, __shfl_xor_sync(0xffffffffu, s, 1));
      s = __fadd_rn(s, __shfl_xor_sync(0xffffffffu, s, 2));
      if (lane % 4 == 0) partials[r][lane / 4 + 8 * half] = s;
    }
  }
}

// The segments of one result in the fixed tree.
template <int kRows>
__device__ __forceinline__ float combined_segments(
    const float (&partials)[kGemvSegments][kRows][kTileRows], int row, int in_strip) {
  float v[kGemvSegments];
#pragma unroll
  for (int s = 0; s < kGemvSegments; ++s) v[s] = partials[s][row][in_strip];
  return __fadd_rn(__fadd_rn(__fadd_rn(v[0], v[1]), __fadd_rn(v[2], v[3])),
                   __fadd_rn(__fadd_rn(v[4], v[5]), __fadd_rn(v[6], v[7])));
}

}  // namespace reckon::kernels::cuda
