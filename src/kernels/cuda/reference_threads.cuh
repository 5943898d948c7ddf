// How the reference kernels deal out work: a thread or a warp each.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reckon::kernels::cuda {

inline constexpr int kReferenceThreads = 128;
inline constexpr int kReferenceWarps = kReferenceThreads / 32;
inline constexpr unsigned kWholeWarp = 0xffffffffU;

__device__ inline int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * kReferenceThreads + threadIdx.x;
}

__device__ inline int64_t warp_index() {
  return static_cast<int64_t>(blockIdx.x) * kReferenceWarps + threadIdx.x / 32;
}

inline dim3 threads_for(int64_t count) {
  return dim3(static_cast<uint32_t>((count + kReferenceThreads - 1) / kReferenceThreads));
}

inline dim3 warps_for(int64_t count) {
  return dim3(static_cast<uint32_t>((count + kReferenceWarps - 1) / kReferenceWarps));
}

template <typename T>
__device__ inline T warp_total(T value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kWholeWarp, value, step);
  return value;
}

}  // namespace reckon::kernels::cuda
