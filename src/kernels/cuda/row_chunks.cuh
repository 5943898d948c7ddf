// A row as chunks of 4 elements, the last one filled up: 16 bytes at a time where rows are aligned.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace reckon::kernels::cuda {

// Chunk c of a row: elements 4c ... 4c + 3, zeros beyond k.
template <bool kVector>
__device__ __forceinline__ float4 load_chunk(const float* row, int64_t chunk, int64_t k) {
  if constexpr (kVector) return *reinterpret_cast<const float4*>(row + 4 * chunk);
  float4 v = {0, 0, 0, 0};
  const int64_t i = 4 * chunk;
  v.x = row[i];
  if (i + 1 < k) v.y = row[i + 1];
  if (i + 2 < k) v.z = row[i + 2];
  if (i + 3 < k) v.w = row[i + 3];
  return v;
}

// Elements i ... i + 3 of a row, zeros beyond k. `vector`: 16 bytes at a time where all are there.
__device__ __forceinline__ float4 load_four(const float* row, int i, int k, bool vector) {
  if (vector && i + 3 < k) return *reinterpret_cast<const float4*>(row + i);
  float4 v;
  v.x = i < k ? row[i] : 0.0F;
  v.y = i + 1 < k ? row[i + 1] : 0.0F;
  v.z = i + 2 < k ? row[i + 2] : 0.0F;
  v.w = i + 3 < k ? row[i + 3] : 0.0F;
  return v;
}

template <bool kVector>
__device__ __forceinline__ void store_chunk(float* row, int64_t chunk, int64_t k, float4 v) {
  if constexpr (kVector) {
    *reinterpret_cast<float4*>(row + 4 * chunk) = v;
    return;
  }
  const int64_t i = 4 * chunk;
  row[i] = v.x;
  if (i + 1 < k) row[i + 1] = v.y;
  if (i + 2 < k) row[i + 2] = v.z;
  if (i + 3 < k) row[i + 3] = v.w;
}

[[nodiscard]] inline bool aligned_16(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

}  // namespace reckon::kernels::cuda
