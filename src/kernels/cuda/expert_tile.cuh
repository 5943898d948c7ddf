// A lane's part of a tile of 16 weight rows × 64 columns times the operands of 8 pairs, by
// mma.m16n8k16 (PTX ISA, "Matrix fragments for mma.m16n8k16"), and the fixed order of a row's sums:
// tile by tile within a segment of K, then the 8 segments in one tree.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/expert_input.cuh"
#include "kernels/cuda/gemv_geometry.h"
#include "kernels/cuda/mma.cuh"

namespace reckon::kernels::cuda {

// 16 bytes of weights, which are read once.
__device__ __forceinline__ uint4 load_once(const uint8_t* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ __forceinline__ void mma_bf16_words(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                               uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A lane's weights as loaded, and as the operand of mma w. scale() is that of row lane / 4 (half 0)
// or that and 8 (half 1).
template <TileType kType>
struct ExpertWeights {
  uint4 weights[4];

  __device__ __forceinline__ void load(const uint8_t* tile, int lane) {
#pragma unroll
    for (int w = 0; w < 4; ++w) weights[w] = load_once(tile + w * 512 + lane * 16);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    a[0] = weights[w].x, a[1] = weights[w].y, a[2] = weights[w].z, a[3] = weights[w].w;
  }
};

template <>
struct ExpertWeights<TileType::kP4> {
  uint4 codes;
  uint2 scales;

  __device__ __forceinline__ void load(const uint8_t* tile, int lane) {
    codes = load_once(tile + lane * 16);
    scales = *reinterpret_cast<const uint2*>(tile + 512 + lane / 4 * 8);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    const uint32_t low = w == 0 ? codes.x : w == 1 ? codes.y : w == 2 ? codes.z : codes.w;
    a[0] = low & 0x000f000fU;
    a[1] = low >> 8 & 0x000f000fU;
    a[2] = low & 0x00f000f0U;
    a[3] = low >> 8 & 0x00f000f0U;
  }
  // {scale, minimum}
  __device__ __forceinline__ float2 scale(int half) const {
    const uint32_t bits = half == 0 ? scales.x : scales.y;
    return __half22float2(*reinterpret_cast<const __half2*>(&bits));
  }
};

template <>
struct ExpertWeights<TileType::kP8> {
  uint4 codes[2];
  uint32_t scales;

  __device__ __forceinline__ void load(const uint8_t* tile, int lane) {
    codes[0] = load_once(tile + lane * 16);
    codes[1] = load_once(tile + 512 + lane * 16);
    scales = *reinterpret_cast<const uint32_t*>(tile + 1024 + lane / 4 * 4);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    const uint4& c = codes[w / 2];
    const uint32_t first = w % 2 == 0 ? c.x : c.z, second = w % 2 == 0 ? c.y : c.w;
    a[0] = first & 0x00ff00ffU;
    a[1] = first >> 8 & 0x00ff00ffU;
    a[2] = second & 0x00ff00ffU;
    a[3] = second >> 8 & 0x00ff00ffU;
  }
  __device__ __forceinline__ float scale(int half) const {
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&scales));
    return half == 0 ? both.x : both.y;
  }
};

// total += the tile times the operands: results (row g, pair 2t), (g, 2t + 1), (g + 8, 2t),
// (g + 8, 2t + 1) with g = lane / 4, t = lane % 4. pair_scales are {scale, sum} of pairs 2t, 2t
// + 1.
template <TileType kType>
__device__ __forceinline__ void add_product(const ExpertWeights<kType>& weights,
                                            const uint32_t (&high)[8], const uint32_t (&low)[8],
                                            const float2 (&pair_scales)[2], float (&total)[4]) {
  if constexpr (kType == TileType::kBf16) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      uint32_t a[4];
      weights.operand(w, a);
      mma_bf16_words(total, a, high[2 * w], high[2 * w + 1]);
      mma_bf16_words(total, a, low[2 * w], low[2 * w + 1]);
    }
    return;
  }
  float sum[4] = {};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    uint32_t a[4];
    weights.operand(w, a);
    mma_f16(sum, a, high[2 * w], high[2 * w + 1]);
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const float2 x = pair_scales[r % 2];
    if constexpr (kType == TileType::kP4) {
      const float2 row = weights.scale(r / 2);
      const float shifted = __fmaf_rn(row.y, x.y, total[r]);
      total[r] = __fmaf_rn(row.x, __fmul_rn(x.x, sum[r]), shifted);
    } else if constexpr (kType == TileType::kP8) {
      total[r] = __fmaf_rn(weights.scale(r / 2), __fmaf_rn(x.x, sum[r], -x.y), total[r]);
    } else {
      total[r] = __fmaf_rn(x.x, sum[r], total[r]);
    }
  }
}

// The sums of segments, given in ascending order, in the tree ((0 1)(2 3))((4 5)(6 7)): of groups
// of four results.
template <int kGroups>
struct SegmentTree {
  float two[kGroups][4], four[kGroups][4], all[kGroups][4];

  __device__ __forceinline__ void add(int segment, const float (&sum)[kGroups][4]) {
#pragma unroll
    for (int i = 0; i < 4 * kGroups; ++i) {
      const int g = i / 4, r = i % 4;
      if (segment % 2 == 0) {
        two[g][r] = sum[g][r];
        continue;
      }
      const float pair = __fadd_rn(two[g][r], sum[g][r]);
      if (segment % 4 == 1) {
        four[g][r] = pair;
        continue;
      }
      const float half = __fadd_rn(four[g][r], pair);
      all[g][r] = segment == 3 ? half : __fadd_rn(all[g][r], half);
    }
  }
};

}  // namespace reckon::kernels::cuda
