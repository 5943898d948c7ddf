// The kernel before attention: norms and rotates q and k where the call says so, and stores k and v
// in the cache. A warp takes a few heads of one row, whose angles it computes once, while it waits;
// the arithmetic is that of the ops on their own (row_math.cuh).
#pragma once

#include <cuda_fp16.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope_table.h"
#include "kernels/cuda/row_math.cuh"
#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

struct Store {
  float* q;        // [rows, heads, head_dim], rotated in place; heads_q 0: left as it is
  const float* k;  // [rows, kv_heads, head_dim]
  const float* v;
  void* cache_k;  // [kv_heads, capacity, head_dim]
  void* cache_v;
  const float* q_norm;  // [head_dim] or null
  const float* k_norm;
  const StepInput* input;
  int64_t rows, capacity;
  int heads_q, kv_heads, head_dim;
  int pairs;  // 0: no rope
  bool half;  // pairing
  float epsilon;
};

inline constexpr int kStoreWarps = 8;
inline constexpr int kMaxHead = 256;
static_assert(kMaxHead / 2 <= kMaxRopePairs);

__device__ __forceinline__ void store_four(float* to, float4 v) {
  *reinterpret_cast<float4*>(to) = v;
}

__device__ __forceinline__ void store_four(__half* to, float4 v) {
  *reinterpret_cast<__half2*>(to) = __floats2half2_rn(v.x, v.y);
  *reinterpret_cast<__half2*>(to + 2) = __floats2half2_rn(v.z, v.w);
}

// Chunk j of a lane is elements 4 (lane + 32 j) ... + 3 of a vector; zeros beyond `dim` and where
// the vector is not `there`.
template <int kChunks>
__device__ __forceinline__ void load_vector(float4 (&x)[kChunks], const float* from, int dim,
                                            bool there) {
#pragma unroll
  for (int j = 0; j < kChunks; ++j) {
    const int chunk = static_cast<int>(threadIdx.x % 32) + 32 * j;
    x[j] = {0, 0, 0, 0};
    if (there && 4 * chunk < dim) x[j] = reinterpret_cast<const float4*>(from)[chunk];
  }
}

// One lane's part of a rotation: its element, the one that it is paired with, and which of the two
// comes first. The bits are those of rotate().
__device__ __forceinline__ float rotate_one(float own, float other, bool is_first, float2 angle) {
  return is_first ? rotate(own, other, angle).x : rotate(other, own, angle).y;
}

__device__ __forceinline__ float4 shuffle_four(float4 v, int lane) {
  return {__shfl_sync(0xffffffffU, v.x, lane), __shfl_sync(0xffffffffU, v.y, lane),
          __shfl_sync(0xffffffffU, v.z, lane), __shfl_sync(0xffffffffU, v.w, lane)};
}

// The norm (where there is a weight), then the rotation of `pairs` pairs, of kCount vectors by one
// warp; vector b turns by angles + steps[b]. Side by side, without branches between them, because a
// vector on its own is a chain of shuffles. Where a pair lies in one lane or in two that hold the
// same element of their chunks, it stays in registers; else it goes by way of `buffer`, which has
// room for a vector.
template <int kCount, int kChunks>
__device__ __forceinline__ void norm_and_rotate(float4 (&x)[kCount][kChunks], int dim,
                                                const float* norm, float epsilon, int pairs,
                                                bool half, const float2* angles,
                                                const int (&steps)[kCount], float4* buffer) {
  const int lane = threadIdx.x % 32;
  if (norm != nullptr) {
    float4 weights[kChunks];
    load_vector(weights, norm, dim, true);
#pragma unroll
    for (int b = 0; b < kCount; ++b) {
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kChunks; ++j) sum = add_squares(sum, x[b][j]);
      const float scale = rms_scale(warp_sum(sum), dim, epsilon);
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        x[b][j] = {rms_element(x[b][j].x, scale, weights[j].x),
                   rms_element(x[b][j].y, scale, weights[j].y),
                   rms_element(x[b][j].z, scale, weights[j].z),
                   rms_element(x[b][j].w, scale, weights[j].w)};
      }
    }
  }
  if (pairs == 0) return;
  if (!half) {
#pragma unroll
    for (int b = 0; b < kCount; ++b) {
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        const int pair = 2 * (lane + 32 * j);
        const float2* own = angles + steps[b];
        const float2 low = rotate(x[b][j].x, x[b][j].y, own[min(pair, pairs - 1)]);
        const float2 high = rotate(x[b][j].z, x[b][j].w, own[min(pair + 1, pairs - 1)]);
        x[b][j] = {pair < pairs ? low.x : x[b][j].x, pair < pairs ? low.y : x[b][j].y,
                   pair + 1 < pairs ? high.x : x[b][j].z, pair + 1 < pairs ? high.y : x[b][j].w};
      }
    }
    return;
  }
  if (kChunks == 1 && pairs % 4 == 0) {
    const int quarter = pairs / 4;  // lanes that hold first elements
    const bool is_first = lane < quarter;
    const bool turns = lane < 2 * quarter;
    const int partner = !turns ? lane : is_first ? lane + quarter : lane - quarter;
    const int own_pair = !turns ? 0 : 4 * (is_first ? lane : partner);
#pragma unroll
    for (int b = 0; b < kCount; ++b) {
      const float4 v = x[b][0];
      const float4 other = shuffle_four(v, partner);
      const float2* own = angles + steps[b] + own_pair;
      const float4 rotated = {
          rotate_one(v.x, other.x, is_first, own[0]), rotate_one(v.y, other.y, is_first, own[1]),
          rotate_one(v.z, other.z, is_first, own[2]), rotate_one(v.w, other.w, is_first, own[3])};
      x[b][0] = {turns ? rotated.x : v.x, turns ? rotated.y : v.y, turns ? rotated.z : v.z,
                 turns ? rotated.w : v.w};
    }
    return;
  }
  auto* elements = reinterpret_cast<float*>(buffer);
#pragma unroll
  for (int b = 0; b < kCount; ++b) {
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      if (4 * (lane + 32 * j) < dim) buffer[lane + 32 * j] = x[b][j];
    }
    __syncwarp();
    for (int pair = lane; pair < pairs; pair += 32) {
      const float2 rotated =
          rotate(elements[pair], elements[pair + pairs], angles[steps[b] + pair]);
      elements[pair] = rotated.x;
      elements[pair + pairs] = rotated.y;
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      if (4 * (lane + 32 * j) < dim) x[b][j] = buffer[lane + 32 * j];
    }
  }
}

inline constexpr int kStoreBatch = 4;                  // vectors of a warp in flight
inline constexpr int kStoreVectors = 2 * kStoreBatch;  // of a warp, all of one row: angles once

template <typename T, int kChunks>
__global__ void __launch_bounds__(kStoreWarps * 32)
    store_rows(const Store store, const __grid_constant__ RopeTable table) {
  release_next();
  __shared__ float4 buffers[kStoreWarps][kMaxHead / 4];
  __shared__ float2 all_angles[kStoreWarps][kMaxRopePairs];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int vectors = store.heads_q + 2 * store.kv_heads;  // of a row
  const int parts = (vectors + kStoreVectors - 1) / kStoreVectors;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kStoreWarps + warp;
  const int64_t row = task / parts;
  if (row >= store.rows) return;
  const int begin = static_cast<int>(task % parts) * kStoreVectors;
  const int dim = store.head_dim;
  const int64_t position = store.input->first_position + row;
  float2* angles = all_angles[warp];
  for (int pair = lane; pair < store.pairs; pair += 32) {
    angles[pair] = rope_angle(position, table.turns[pair]);
  }
  __syncwarp();
  wait_for_previous();
#pragma unroll 1
  for (int base = begin; base < begin + kStoreVectors && base < vectors; base += kStoreBatch) {
    float4 x[kStoreBatch][kChunks];
#pragma unroll
    for (int b = 0; b < kStoreBatch; ++b) {
      const int kv = base + b - store.heads_q;  // 0 ... kv_heads - 1: k, from kv_heads on: v
      const float* from = kv < 0 ? store.q + (row * store.heads_q + base + b) * dim
                          : kv < store.kv_heads
                              ? store.k + (row * store.kv_heads + kv) * dim
                              : store.v + (row * store.kv_heads + kv - store.kv_heads) * dim;
      load_vector(x[b], from, dim, base + b < vectors);
    }
#pragma unroll
    for (int b = 0; b < kStoreBatch; ++b) {
      const int kv = base + b - store.heads_q;
      if (base + b >= vectors) continue;
      const bool is_v = kv >= store.kv_heads;
      if (!is_v) {
        float4 one[1][kChunks];
#pragma unroll
        for (int j = 0; j < kChunks; ++j) one[0][j] = x[b][j];
        norm_and_rotate(one, dim, kv < 0 ? store.q_norm : store.k_norm, store.epsilon, store.pairs,
                        store.half, angles, {0}, buffers[warp]);
#pragma unroll
        for (int j = 0; j < kChunks; ++j) x[b][j] = one[0][j];
      }
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        const int i = 4 * (lane + 32 * j);
        if (i >= dim) continue;
        if (kv < 0) {
          store_four(store.q + (row * store.heads_q + base + b) * dim + i, x[b][j]);
        } else {
          auto* cache = static_cast<T*>(is_v ? store.cache_v : store.cache_k);
          const int64_t to = (is_v ? kv - store.kv_heads : kv) * store.capacity + position;
          store_four(cache + to * dim + i, x[b][j]);
        }
      }
    }
  }
}

template <typename T>
void launch_store(const Store& store, const RopeTable& table, KernelContext& context) {
  const int parts = (store.heads_q + 2 * store.kv_heads + kStoreVectors - 1) / kStoreVectors;
  const dim3 grid(static_cast<uint32_t>((store.rows * parts + kStoreWarps - 1) / kStoreWarps));
  launch(context, store.head_dim <= 128 ? store_rows<T, 1> : store_rows<T, 2>, grid,
         dim3(kStoreWarps * 32), 0, store, table);
}

// Before attention.
template <typename T>
void store_keys(const AttentionArgs& args, KernelContext& context) {
  Store store{};
  store.k = args.k;
  store.v = args.v;
  store.cache_k = args.cache_k;
  store.cache_v = args.cache_v;
  store.input = queue(context).input;
  store.rows = args.rows;
  store.capacity = args.capacity;
  store.kv_heads = static_cast<int>(args.kv_heads);
  store.head_dim = static_cast<int>(args.head_dim);
  launch_store<T>(store, RopeTable{}, context);
}

// Before rope_attention's attention; q is overwritten.
template <typename T>
void rotate_and_store(const RopeAttentionArgs& args, KernelContext& context) {
  const AttentionArgs& attention = args.attention;
  Store store{};
  store.q = const_cast<float*>(attention.q);
  store.k = attention.k;
  store.v = attention.v;
  store.cache_k = attention.cache_k;
  store.cache_v = attention.cache_v;
  store.q_norm = args.q_norm;
  store.k_norm = args.k_norm;
  store.input = queue(context).input;
  store.rows = attention.rows;
  store.capacity = attention.capacity;
  store.heads_q = static_cast<int>(attention.heads);
  store.kv_heads = static_cast<int>(attention.kv_heads);
  store.head_dim = static_cast<int>(attention.head_dim);
  store.pairs = static_cast<int>(args.rope_dims / 2);
  store.half = args.pairing == RopePairing::kHalf;
  store.epsilon = args.epsilon;
  launch_store<T>(store, rope_table(args.rope_dims, args.rope_base), context);
}

}  // namespace reckon::kernels::cuda
