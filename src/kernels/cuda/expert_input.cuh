// Activations as operands of the expert matmuls on matrix instructions: 64 columns of a row, 16 a
// lane of four, as halves after a power-of-two scale, or for bf16 weights as the sum of two bf16.
// A row's operands depend on that row alone.
//
// What a lane has of a tile are words for the mma of 16 columns w = 0 ... 3: b0 = word 2w, b1 =
// word 2w + 1, in natural order of its columns (weight_tiles.h). Codes of p4 in the third and
// fourth column of each four come 16 times too large, so those operands are divided by 16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/weight_tiles.h"

namespace reckon::kernels::cuda {

// Of one lane. The value of a product with integer codes is scale * sum of operand * code, with
// codes as half subnormals c * 2^-24; `sum` is what a minimum is multiplied with (p8: 128 times it,
// which undoes the codes' offset).
struct LaneInput {
  uint32_t high[8];
  uint32_t low[8];  // of bf16 alone
  float scale, sum;
};

template <typename Pair>
__device__ __forceinline__ uint32_t word_of_pair(Pair v) {
  return *reinterpret_cast<const uint32_t*>(&v);
}

__device__ __forceinline__ float sum_of_four_lanes(float v) {
  v = __fadd_rn(v, __shfl_xor_sync(0xffffffffU, v, 1));
  return __fadd_rn(v, __shfl_xor_sync(0xffffffffU, v, 2));
}

__device__ __forceinline__ void split_columns(const float4 (&v)[4], LaneInput& input) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float4 four = v[i / 2];
    const float a = i % 2 == 0 ? four.x : four.z;
    const float b = i % 2 == 0 ? four.y : four.w;
    const __nv_bfloat16 high_a = __float2bfloat16_rn(a);
    const __nv_bfloat16 high_b = __float2bfloat16_rn(b);
    input.high[i] = word_of_pair(__halves2bfloat162(high_a, high_b));
    input.low[i] = word_of_pair(__floats2bfloat162_rn(__fsub_rn(a, __bfloat162float(high_a)),
                                                      __fsub_rn(b, __bfloat162float(high_b))));
  }
  input.scale = 1;
  input.sum = 0;
}

// All lanes of a warp call it; v are the lane's columns 16 (lane % 4) ... + 15 of the tile.
template <TileType kType>
__device__ __forceinline__ LaneInput round_columns(const float4 (&v)[4]) {
  LaneInput input;
  if constexpr (kType == TileType::kBf16) {
    split_columns(v, input);
    return input;
  }
  float largest = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    largest = fmaxf(
        largest, fmaxf(fmaxf(fabsf(v[i].x), fabsf(v[i].y)), fmaxf(fabsf(v[i].z), fabsf(v[i].w))));
  }
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, 2));
  // x * 2^(14 - e) with 2^e <= largest < 2^(e + 1): at most 2^15 after rounding to half.
  const int exponent = max(static_cast<int>(__float_as_uint(largest) >> 23), 40);
  const float down = __uint_as_float(static_cast<uint32_t>(268 - exponent) << 23);
  float sums[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __half2 a = __floats2half2_rn(__fmul_rn(v[i].x, down), __fmul_rn(v[i].y, down));
    const __half2 b = __floats2half2_rn(__fmul_rn(v[i].z, down), __fmul_rn(v[i].w, down));
    const float2 fa = __half22float2(a), fb = __half22float2(b);
    sums[i] = __fadd_rn(__fadd_rn(fa.x, fa.y), __fadd_rn(fb.x, fb.y));
    input.high[2 * i] = word_of_pair(a);
    input.high[2 * i + 1] =
        word_of_pair(kType == TileType::kP4
                         ? __floats2half2_rn(__fmul_rn(fb.x, 0.0625F), __fmul_rn(fb.y, 0.0625F))
                         : b);
  }
  const float sum =
      sum_of_four_lanes(__fadd_rn(__fadd_rn(sums[0], sums[1]), __fadd_rn(sums[2], sums[3])));
  const int code_exponent = kType == TileType::kF16 ? 0 : 24;
  const float up = __uint_as_float(static_cast<uint32_t>(exponent - 14) << 23);
  // A scale over float32 becomes infinite.
  input.scale =
      __uint_as_float(static_cast<uint32_t>(min(exponent - 14 + code_exponent, 255)) << 23);
  input.sum = __fmul_rn(__fmul_rn(sum, up), kType == TileType::kP8 ? 128.0F : 1.0F);
  return input;
}

// Where rows are many, they are rounded once: planes of [rows, tiles, 64] 16-bit operands (two for
// bf16) and [rows, tiles] {scale, sum}.
struct RoundedInput {
  const uint4* high = nullptr;
  const uint4* low = nullptr;
  const float2* scales = nullptr;
};

constexpr uint64_t rounded_plane_bytes(int64_t rows, int64_t tiles) {
  return static_cast<uint64_t>(rows * tiles) * kTileColumns * 2;
}

constexpr uint64_t rounded_bytes(TileType type, int64_t rows, int64_t tiles) {
  return rounded_plane_bytes(rows, tiles) * (type == TileType::kBf16 ? 2 : 1) +
         static_cast<uint64_t>(rows * tiles) * sizeof(float2);
}

[[nodiscard]] inline RoundedInput rounded_at(const void* memory, TileType type, int64_t rows,
                                             int64_t tiles) {
  const auto* bytes = static_cast<const char*>(memory);
  const uint64_t plane = rounded_plane_bytes(rows, tiles);
  const bool split = type == TileType::kBf16;
  RoundedInput input;
  input.high = reinterpret_cast<const uint4*>(bytes);
  input.low = reinterpret_cast<const uint4*>(bytes + (split ? plane : 0));
  input.scales = reinterpret_cast<const float2*>(bytes + plane * (split ? 2 : 1));
  return input;
}

}  // namespace reckon::kernels::cuda
