// Weights of a tile (weight_tiles.h) as the A operand of mma.m16n8k16 and of wgmma, which lay a
// 16-row slice of A over a warp in the same way: registers 0 ... 3 of k-step w, two halves each.
//
// Codes are made whole half-precision numbers first (exact) and scaled by one fused multiply-add,
// so a weight is rounded once, by at most 2^-11 of its size. The cheaper form, one multiply-add on
// 1024 + code with the 1024 folded into the minimum, rounds that minimum to half a step of the
// codes; it was rejected for that. The exact kernels' trick of leaving the scale to the
// accumulators needs a pass over them for each group of 64, which wgmma's asynchronous accumulators
// rule out.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/weight_tiles.h"

namespace reckon::kernels::cuda {

// What one lane holds of a tile: rows g and g + 8, columns 16t ... 16t + 15.
template <TileType kType>
struct TileWords;

__device__ __forceinline__ __half2 as_half2(uint32_t bits) {
  return *reinterpret_cast<const __half2*>(&bits);
}
__device__ __forceinline__ uint32_t as_bits(__half2 value) {
  return *reinterpret_cast<const uint32_t*>(&value);
}
__device__ __forceinline__ uint32_t masked_or(uint32_t word, uint32_t mask, uint32_t bits) {
  uint32_t result;  // (word & mask) | bits
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "r"(mask), "r"(bits));
  return result;
}

template <>
struct TileWords<TileType::kP4> {
  static constexpr int64_t kBytes = tile_bytes(TileType::kP4);
  uint4 codes;
  uint2 scales;  // { scale, minimum } of row g, of row g + 8

  __device__ __forceinline__ void load(const uint8_t* tile, int lane) {
    codes = *reinterpret_cast<const uint4*>(tile + lane * 16);
    scales = *reinterpret_cast<const uint2*>(tile + 512 + lane / 4 * 8);
  }

  // The A registers of k-step kW.
  template <int kW>
  __device__ __forceinline__ void fragment(uint32_t (&a)[4]) const {
    const uint32_t word = kW == 0 ? codes.x : kW == 1 ? codes.y : kW == 2 ? codes.z : codes.w;
    constexpr uint32_t k1024 = 0x64006400;  // a code in the low bits of 1024 is 1024 + code
    const uint32_t high = word >> 8;
    const __half2 offset = as_half2(0xe400e400);     // -1024
    const __half2 sixteenth = as_half2(0x2c002c00);  // 1 / 16
    const __half2 offset16 = as_half2(0xd400d400);   // -64
    const __half2 scale0 = __low2half2(as_half2(scales.x)), low0 = __high2half2(as_half2(scales.x));
    const __half2 scale8 = __low2half2(as_half2(scales.y)), low8 = __high2half2(as_half2(scales.y));
    const __half2 c0 = __hadd2(as_half2(masked_or(word, 0x000f000f, k1024)), offset);
    const __half2 c1 = __hadd2(as_half2(masked_or(high, 0x000f000f, k1024)), offset);
    const __half2 c2 = __hfma2(as_half2(masked_or(word, 0x00f000f0, k1024)), sixteenth, offset16);
    const __half2 c3 = __hfma2(as_half2(masked_or(high, 0x00f000f0, k1024)), sixteenth, offset16);
    a[0] = as_bits(__hfma2(c0, scale0, low0));
    a[1] = as_bits(__hfma2(c1, scale8, low8));
    a[2] = as_bits(__hfma2(c2, scale0, low0));
    a[3] = as_bits(__hfma2(c3, scale8, low8));
  }
};

template <>
struct TileWords<TileType::kP8> {
  static constexpr int64_t kBytes = tile_bytes(TileType::kP8);
  uint4 codes[2];
  uint32_t scales;  // of row g, of row g + 8

  __device__ __forceinline__ void load(const uint8_t* tile, int lane) {
    codes[0] = *reinterpret_cast<const uint4*>(tile + lane * 16);
    codes[1] = *reinterpret_cast<const uint4*>(tile + 512 + lane * 16);
    scales = *reinterpret_cast<const uint32_t*>(tile + 1024 + lane / 4 * 4);
  }

  template <int kW>
  __device__ __forceinline__ void fragment(uint32_t (&a)[4]) const {
    const uint4& half = codes[kW / 2];
    const uint32_t first = kW % 2 == 0 ? half.x : half.z;
    const uint32_t second = kW % 2 == 0 ? half.y : half.w;
    constexpr uint32_t k1024 = 0x64646464;        // 1024 + 128 + code
    const __half2 offset = as_half2(0xe480e480);  // -1152
    const __half2 scale0 = __low2half2(as_half2(scales)), scale8 = __high2half2(as_half2(scales));
    const auto code = [&](uint32_t word, uint32_t selector) {
      return __hadd2(as_half2(__byte_perm(word, k1024, selector)), offset);
    };
    a[0] = as_bits(__hmul2(code(first, 0x4240), scale0));
    a[1] = as_bits(__hmul2(code(first, 0x4341), scale8));
    a[2] = as_bits(__hmul2(code(second, 0x4240), scale0));
    a[3] = as_bits(__hmul2(code(second, 0x4341), scale8));
  }
};

struct PlainTileWords {
  static constexpr int64_t kBytes = tile_bytes(TileType::kF16);
  uint4 weights[4];

  __device__ __forceinline__ void load(const uint8_t* tile, int lane) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      weights[w] = *reinterpret_cast<const uint4*>(tile + w * 512 + lane * 16);
    }
  }

  template <int kW>
  __device__ __forceinline__ void fragment(uint32_t (&a)[4]) const {
    a[0] = weights[kW].x;
    a[1] = weights[kW].y;
    a[2] = weights[kW].z;
    a[3] = weights[kW].w;
  }
};
template <>
struct TileWords<TileType::kF16> : PlainTileWords {};
template <>
struct TileWords<TileType::kBf16> : PlainTileWords {};

}  // namespace reckon::kernels::cuda
