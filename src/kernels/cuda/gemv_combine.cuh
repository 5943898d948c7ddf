// The warp of a block of gemv_mma.cuh that adds the segments of strips and stores the results.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemv_args.cuh"
#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_geometry.h"
#include "kernels/cuda/gemv_work.cuh"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {

__device__ __forceinline__ float4 add4(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

// The combining warp: adds the segments of each strip in the fixed tree and stores the results.
template <int kNTiles>
__device__ __forceinline__ void combine_strips(const GemvKernelArgs& args, const GemvWork& work,
                                               const GemvBarriers& barriers, uint32_t shared,
                                               uint32_t lane, int first_row, int rows) {
  const uint32_t read_there =
      cluster_address(barriers.sums_read, lane < static_cast<uint32_t>(args.cluster) ? lane : 0);
  RingPosition at;
  float gate[kNTiles][4];
  for (int base = work.first; base < args.units; base += work.step) {
    const int unit = base + work.rank;
    for (int part = 0; part < args.parts; ++part) {
      barrier_wait(barriers.sums_arrived + at.slot * 8, at.parity);
      float sum[kNTiles][4];
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
        float4 v[kGemvSegments];
#pragma unroll
        for (int s = 0; s < kGemvSegments; ++s) {
          const uint4 bits = load_shared_16(
              shared + args.shared.partials +
              static_cast<uint32_t>((at.slot * kGemvSegments + s) * kNTiles + nt) * 512 +
              lane * 16);
          v[s] = make_float4(__uint_as_float(bits.x), __uint_as_float(bits.y),
                             __uint_as_float(bits.z), __uint_as_float(bits.w));
        }
        const float4 low = add4(add4(v[0], v[1]), add4(v[2], v[3]));
        const float4 all = add4(low, add4(add4(v[4], v[5]), add4(v[6], v[7])));
        sum[nt][0] = all.x, sum[nt][1] = all.y, sum[nt][2] = all.z, sum[nt][3] = all.w;
      }
      if (args.cluster == 1) {
        barrier_arrive(barriers.sums_read + at.slot * 8);
      } else {
        __syncwarp();
        if (lane == 0) {
          barrier_expect(barriers.sums_arrived + at.slot * 8, kGemvSegments * kNTiles * 512);
        }
        __syncwarp();
        if (lane < static_cast<uint32_t>(args.cluster)) {
          cluster_barrier_arrive(read_there + at.slot * 8);
        }
      }
      at.step(kGemvPartialSlots);
      if (unit >= args.units) continue;
      if (args.parts > 1 && part == 0) {
#pragma unroll
        for (int i = 0; i < 4 * kNTiles; ++i) gate[i / 4][i % 4] = sum[i / 4][i % 4];
        continue;
      }
      const GemvStrip strip = find_strip(args, unit, part);
      const int target = args.parts > 1 ? 0 : strip.weight;
      float* out = args.out[target] + first_row * args.out_stride[target];
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = nt * 8 + static_cast<int>(lane % 4) * 2 + i % 2;
          const int column = strip.index * 16 + static_cast<int>(lane / 4) + i / 2 * 8;
          if (row >= rows || column >= args.n[strip.weight]) continue;
          const float value = args.parts > 1 ? swiglu_element(gate[nt][i], sum[nt][i]) : sum[nt][i];
          out[row * args.out_stride[target] + column] = value;
        }
      }
    }
  }
}

}  // namespace reckon::kernels::cuda
