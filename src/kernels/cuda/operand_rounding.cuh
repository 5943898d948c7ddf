// Activations as operands of the exact matmuls on matrix instructions: 64 columns of a row, 16 a
// lane of four, as halves after a power-of-two scale, or for bf16 weights as the sum of two bf16.
// A row's operands depend on that row alone, and the plain matmul (gemv_input.cuh) and that of
// experts (expert_matmul_mma.cu) have the same.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/lane_tile.cuh"

namespace reckon::kernels::cuda {

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

__device__ __forceinline__ float largest_of(float4 v) {
  return fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
}

// Calls put(i, high, low) with columns 16i + 4t ... + 3 as the sum of two bf16 each.
template <typename Put>
__device__ __forceinline__ void split_columns(const LaneColumns& v, const Put& put) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float4 f = v.of16[i];
    const __nv_bfloat162 a = __floats2bfloat162_rn(f.x, f.y), b = __floats2bfloat162_rn(f.z, f.w);
    const float2 fa = __bfloat1622float2(a), fb = __bfloat1622float2(b);
    put(i, make_uint2(bits_of(a), bits_of(b)),
        make_uint2(bits_of(__floats2bfloat162_rn(__fsub_rn(f.x, fa.x), __fsub_rn(f.y, fa.y))),
                   bits_of(__floats2bfloat162_rn(__fsub_rn(f.z, fb.x), __fsub_rn(f.w, fb.y)))));
  }
}

// Calls put(i, operands, low halves of bf16) for the lane's columns 16i + 4t ... + 3 and, in one
// lane of four, put_scale({scale, sum}) for all 64; never that for bf16. The value of a product
// with integer codes is scale * sum of operand * code, with codes as half subnormals c * 2^-24;
// `sum` is what a minimum is multiplied with (p8: 128 times it, which undoes the codes' offset).
// All 32 lanes call it.
template <TileType kType, typename Put, typename PutScale>
__device__ __forceinline__ void round_columns(const LaneColumns& v, uint32_t lane4, const Put& put,
                                              const PutScale& put_scale) {
  if constexpr (kType == TileType::kBf16) {
    split_columns(v, put);
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
    put(i, make_uint2(a, b), uint2{});
  }
  // Four lanes are a column of the product, whose rows are all alike: lane t of four 2t and 2t + 1
  // has the sums of just those.
  const uint32_t four = threadIdx.x / 4 % 8;
  if (lane4 == four / 2) {
    // Integer codes are half subnormals, c * 2^-24. A scale over float32 becomes infinite.
    const int code_exponent = kType == TileType::kF16 ? 0 : 24;
    const float up = __uint_as_float(static_cast<uint32_t>(exponent - 14) << 23);
    const int scale_exponent = min(exponent - 14 + code_exponent, 255);
    const float sum = four % 2 ? sums[1] : sums[0];
    const float x_sum = __fmul_rn(__fmul_rn(sum, up), kType == TileType::kP8 ? 128.0f : 1.0f);
    put_scale(make_float2(__uint_as_float(static_cast<uint32_t>(scale_exponent) << 23), x_sum));
  }
}

// Rounds 64 columns of a row into shared memory: operands at `to` (of the lane's first four; 32
// bytes on for the next), low halves of bf16 `plane` on, and their {scale, sum} at `meta`. All 32
// lanes call it; four without columns do not store.
template <TileType kType>
__device__ __forceinline__ void stage_columns(const LaneColumns& v, bool store, uint32_t to,
                                              uint32_t plane, uint32_t meta, uint32_t lane4) {
  const auto put = [&](int i, uint2 high, uint2 low) {
    if (!store) return;
    store_shared_8(to + i * 32, high);
    if constexpr (kType == TileType::kBf16) store_shared_8(to + plane + i * 32, low);
  };
  const auto put_scale = [&](float2 scale) {
    if (!store) return;
    store_shared_8(meta, make_uint2(__float_as_uint(scale.x), __float_as_uint(scale.y)));
  };
  round_columns<kType>(v, lane4, put, put_scale);
}

}  // namespace reckon::kernels::cuda
