// What the exact matmuls on matrix instructions have in common: a lane's weights of a tile of 16
// rows x 64 columns as operands of mma.m16n8k16 (PTX ISA, "Matrix fragments for mma.m16n8k16"), and
// what a tile adds to a row's sum.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/weight_tiles.h"

namespace reckon::kernels::cuda {

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

// Weights in shared memory, or in device memory, where they are read once.
__device__ __forceinline__ uint4 load_weights_16(uint32_t shared) {
  return load_shared_16(shared);
}
__device__ __forceinline__ uint2 load_weights_8(uint32_t shared) {
  return load_shared_8(shared);
}
__device__ __forceinline__ uint32_t load_weights_4(uint32_t shared) {
  return load_shared_4(shared);
}
__device__ __forceinline__ uint4 load_weights_16(const uint8_t* from) {
  return stream_16(from);
}
__device__ __forceinline__ uint2 load_weights_8(const uint8_t* from) {
  return *reinterpret_cast<const uint2*>(from);
}
__device__ __forceinline__ uint32_t load_weights_4(const uint8_t* from) {
  return *reinterpret_cast<const uint32_t*>(from);
}

// One lane's weights of a tile as loaded, and as operand registers of mma w.
template <TileType kType>
struct LaneTile;

template <>
struct LaneTile<TileType::kP4> {
  uint4 codes;
  uint2 scales;  // {scale, minimum} of row g, of row g + 8

  template <typename Address>
  __device__ __forceinline__ void load(Address tile, uint32_t lane) {
    codes = load_weights_16(tile + lane * 16);
    scales = load_weights_8(tile + 512 + (lane >> 2) * 8);
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

  template <typename Address>
  __device__ __forceinline__ void load(Address tile, uint32_t lane) {
    codes[0] = load_weights_16(tile + lane * 16);
    codes[1] = load_weights_16(tile + 512 + lane * 16);
    scales = load_weights_4(tile + 1024 + (lane >> 2) * 4);
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

  template <typename Address>
  __device__ __forceinline__ void load(Address tile, uint32_t lane) {
#pragma unroll
    for (int w = 0; w < 4; ++w) weights[w] = load_weights_16(tile + w * 512 + lane * 16);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    a[0] = weights[w].x, a[1] = weights[w].y, a[2] = weights[w].z, a[3] = weights[w].w;
  }
};
template <>
struct LaneTile<TileType::kF16> : LaneTilePlain {};
template <>
struct LaneTile<TileType::kBf16> : LaneTilePlain {};

// total += the scaled `sum` of a tile, for a lane's results (row g, x 2t), (g, 2t + 1), (g + 8,
// 2t), (g + 8, 2t + 1), every kStep-th of them, where rows 2t and 2t + 1 of x have these scales and
// sums.
template <TileType kType, int kStep>
__device__ __forceinline__ void add_scaled(const LaneTile<kType>& tile, const float (&x_scale)[2],
                                           const float (&x_sum)[2], const float (&sum)[4],
                                           float (&total)[4]) {
  if constexpr (kType == TileType::kP4) {
    const float2 row[2] = {__half22float2(*reinterpret_cast<const __half2*>(&tile.scales.x)),
                           __half22float2(*reinterpret_cast<const __half2*>(&tile.scales.y))};
#pragma unroll
    for (int r = 0; r < 4; r += kStep) {
      const float shifted = __fmaf_rn(row[r / 2].y, x_sum[r % 2], total[r]);
      total[r] = __fmaf_rn(row[r / 2].x, __fmul_rn(x_scale[r % 2], sum[r]), shifted);
    }
  } else if constexpr (kType == TileType::kP8) {
    const float2 scale = __half22float2(*reinterpret_cast<const __half2*>(&tile.scales));
#pragma unroll
    for (int r = 0; r < 4; r += kStep) {
      const float value = __fmaf_rn(x_scale[r % 2], sum[r], -x_sum[r % 2]);
      total[r] = __fmaf_rn(r / 2 ? scale.y : scale.x, value, total[r]);
    }
  } else {
#pragma unroll
    for (int r = 0; r < 4; r += kStep) {
      total[r] = __fmaf_rn(x_scale[r % 2], sum[r], total[r]);
    }
  }
}

}  // namespace reckon::kernels::cuda
