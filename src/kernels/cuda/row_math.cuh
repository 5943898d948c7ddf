// Arithmetic of rows that several kernels share, so that a fused kernel gives the bits of the ops
// that it stands for: sums over a row, the RMS norm's scale, the rotation of a pair. Every rounding
// is spelled out (__fmul_rn and so on): the compiler must not contract it differently in one of
// them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reckon::kernels::cuda {

__device__ __forceinline__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) {
    value = __fadd_rn(value, __shfl_xor_sync(0xffffffffU, value, step));
  }
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, step));
  }
  return value;
}

// Order of a row's sum of squares, by k alone: chunks of 4 elements are dealt to kWorkers workers
// in turn; a worker adds the squares of its chunks in ascending order by fma from 0; 32 workers are
// a warp and folded by xor 16, 8, 4, 2, 1; warps are added in ascending order. Rows of up to
// kWarpRow elements (heads) have 32 workers, longer ones kRowWorkers.
inline constexpr int64_t kWarpRow = 1024;
inline constexpr int kRowWorkers = 512;

__device__ __forceinline__ float add_squares(float sum, float4 v) {
  sum = __fmaf_rn(v.x, v.x, sum);
  sum = __fmaf_rn(v.y, v.y, sum);
  sum = __fmaf_rn(v.z, v.z, sum);
  return __fmaf_rn(v.w, v.w, sum);
}

__device__ __forceinline__ float rms_scale(float sum_of_squares, int64_t k, float epsilon) {
  const float mean = __fdiv_rn(sum_of_squares, static_cast<float>(k));
  return __fdiv_rn(1.0F, __fsqrt_rn(__fadd_rn(mean, epsilon)));
}

__device__ __forceinline__ float rms_element(float x, float scale, float weight) {
  return __fmul_rn(__fmul_rn(x, scale), weight);
}

// A pair's cosine and sine. `turns` is its frequency in turns a position; the product is reduced to
// half a turn in float64, so that the angle is right to 4e-7 at position 10^6.
__device__ __forceinline__ float2 rope_angle(int64_t position, double turns) {
  const double angle = static_cast<double>(position) * turns;
  const double fraction = angle - rint(angle);
  float2 result;
  sincospif(2.0F * static_cast<float>(fraction), &result.y, &result.x);
  return result;
}

__device__ __forceinline__ float2 rotate(float a, float b, float2 angle) {
  return {__fmaf_rn(a, angle.x, -__fmul_rn(b, angle.y)),
          __fmaf_rn(b, angle.x, __fmul_rn(a, angle.y))};
}

}  // namespace reckon::kernels::cuda
