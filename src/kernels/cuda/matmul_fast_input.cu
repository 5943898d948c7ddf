#include "kernels/cuda/matmul_fast_input.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tensor/blocks.h"

namespace reckon::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Columns first ... first + 3 of a row, 0 beyond k. `aligned`: rows start at 16-byte boundaries.
__device__ float4 four(const float* row, int64_t first, int64_t k, bool aligned) {
  if (aligned && first < k) return *reinterpret_cast<const float4*>(row + first);
  float4 v = make_float4(0, 0, 0, 0);
  if (first < k) v.x = row[first];
  if (first + 1 < k) v.y = row[first + 1];
  if (first + 2 < k) v.z = row[first + 2];
  if (first + 3 < k) v.w = row[first + 3];
  return v;
}
__device__ float2 two(const float* row, int64_t first, int64_t k, bool aligned) {
  if (aligned && first < k) return *reinterpret_cast<const float2*>(row + first);
  return make_float2(first < k ? row[first] : 0.0f, first + 1 < k ? row[first + 1] : 0.0f);
}

// The largest magnitude of the row over the block; NaN is passed over, it shows in the values.
__device__ float row_maximum(const float* row, int64_t k, bool aligned) {
  __shared__ float warps[kThreads / 32];
  float largest = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x * 4; i < k; i += kThreads * 4) {
    const float4 v = four(row, i, k, aligned);
    largest = fmaxf(fmaxf(largest, fmaxf(fabsf(v.x), fabsf(v.y))), fmaxf(fabsf(v.z), fabsf(v.w)));
  }
  for (int step = 16; step > 0; step /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  }
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = largest;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) largest = fmaxf(largest, warps[i]);
  return largest;
}

// The power of two that the row is multiplied with.
__device__ float row_scale(float largest) {
  if ((largest >= 0x1p-4f && largest < 0x1p15f) || largest == 0) return 1;
  if (!(largest < INFINITY)) return 1;
  // Of a subnormal row the largest step that float has will do.
  const int exponent = max(ilogbf(largest), -112);
  return ldexpf(1, 14 - exponent);
}

template <bool kBf16>
__device__ uint32_t rounded(float low, float high) {
  if constexpr (kBf16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  }
}

// A block a row: its maximum, then the row again, from the cache. A second read of at most 70 KB
// costs less than keeping the row in registers, which would bound k.
template <bool kBf16, InputOrder kOrder>
__global__ void __launch_bounds__(kThreads)
    convert_kernel(const float* __restrict__ x, int64_t k, int64_t blocks, int64_t padded_rows,
                   uint16_t* __restrict__ out, float* __restrict__ scales) {
  const int64_t r = blockIdx.x;
  const float* row = x + r * k;
  const bool aligned = k % 4 == 0;
  float scale = 1;
  if constexpr (!kBf16) {
    scale = row_scale(row_maximum(row, k, aligned));
    if (threadIdx.x == 0) scales[r] = 1 / scale;
  }
  if constexpr (kOrder == InputOrder::kRows) {
    for (int64_t first = threadIdx.x * 4; first < blocks * 64; first += kThreads * 4) {
      const float4 v = four(row, first, k, aligned);
      *reinterpret_cast<uint2*>(out + r * blocks * 64 + first) = make_uint2(
          rounded<kBf16>(v.x * scale, v.y * scale), rounded<kBf16>(v.z * scale, v.w * scale));
    }
  } else {
    for (int64_t piece = threadIdx.x; piece < blocks * 8; piece += kThreads) {
      const int64_t block = piece / 8;
      const int i = static_cast<int>(piece % 8);
      uint32_t words[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const float2 v = two(row, block * 64 + 16 * t + 2 * i, k, aligned);
        words[t] = rounded<kBf16>(v.x * scale, v.y * scale);
      }
      const int64_t at = (block * padded_rows + r) * 8 + (i ^ static_cast<int>(r % 8));
      reinterpret_cast<uint4*>(out)[at] = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

}  // namespace

std::optional<TileType> fast_tile_type(DType type) {
  switch (type) {
    case DType::kP4:
      return TileType::kP4;
    case DType::kP8:
      return TileType::kP8;
    case DType::kF16:
      return TileType::kF16;
    case DType::kBF16:
      return TileType::kBf16;
    default:
      return std::nullopt;
  }
}

InputLaunch convert_input(const float* x, int64_t rows, int64_t k, bool bf16, InputOrder order,
                          int64_t padded_rows, void* out, float* scales, cudaStream_t stream) {
  const bool in_rows = order == InputOrder::kRows;
  auto* kernel = bf16 ? (in_rows ? convert_kernel<true, InputOrder::kRows>
                                 : convert_kernel<true, InputOrder::kTiles>)
                      : (in_rows ? convert_kernel<false, InputOrder::kRows>
                                 : convert_kernel<false, InputOrder::kTiles>);
  InputLaunch launch{reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(rows)),
                     dim3(kThreads), cudaSuccess};
  kernel<<<launch.grid, launch.block, 0, stream>>>(x, k, tiles_of(k), padded_rows,
                                                   static_cast<uint16_t*>(out), scales);
  launch.error = cudaGetLastError();
  return launch;
}

}  // namespace reckon::kernels::cuda
