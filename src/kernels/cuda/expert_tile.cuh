// A lane's part of a tile of 16 weight rows × 64 columns times the operands of 8 pairs, and the
// fixed order of a row's sums: tile by tile within a segment of K, then the 8 segments in one tree.
#pragma once

#include "kernels/cuda/lane_tile.cuh"
#include "kernels/cuda/mma.cuh"

namespace reckon::kernels::cuda {

// 16 columns of a row: words for the mma of columns 4w ... 4w + 3 of them, w = 0 ... 3, are b0 =
// word 2w and b1 = word 2w + 1.
struct LaneOperands {
  uint4 high[2];
  uint4 low[2];  // of bf16 alone

  __device__ __forceinline__ static uint2 words(const uint4 (&from)[2], int w) {
    const uint4& v = from[w / 2];
    return w % 2 == 0 ? make_uint2(v.x, v.y) : make_uint2(v.z, v.w);
  }
};

// total += the tile times the operands: results (row g, pair 2t), (g, 2t + 1), (g + 8, 2t),
// (g + 8, 2t + 1) with g = lane / 4, t = lane % 4. x_scale and x_sum are those of pairs 2t, 2t + 1.
template <TileType kType>
__device__ __forceinline__ void add_product(const LaneTile<kType>& weights, const LaneOperands& x,
                                            const float (&x_scale)[2], const float (&x_sum)[2],
                                            float (&total)[4]) {
  float sum[4] = {};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    uint32_t a[4];
    weights.operand(w, a);
    const uint2 high = LaneOperands::words(x.high, w);
    if constexpr (kType == TileType::kBf16) {
      const uint2 low = LaneOperands::words(x.low, w);
      mma_bf16(total, a, high.x, high.y);
      mma_bf16(total, a, low.x, low.y);
    } else {
      mma_f16(sum, a, high.x, high.y);
    }
  }
  if constexpr (kType != TileType::kBf16) add_scaled<kType, 1>(weights, x_scale, x_sum, sum, total);
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
