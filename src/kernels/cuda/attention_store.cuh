// The kernel before attention: norms and rotates q and k where the call says so, and stores k and v
// in the cache. One warp a vector of head_dim; the arithmetic is that of the ops on their own
// (row_math.cuh). The angles depend on the position alone and are computed while the kernel waits.
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

__device__ __forceinline__ void store_four(float* to, float4 v) {
  *reinterpret_cast<float4*>(to) = v;
}

__device__ __forceinline__ void store_four(__half* to, float4 v) {
  *reinterpret_cast<__half2*>(to) = __floats2half2_rn(v.x, v.y);
  *reinterpret_cast<__half2*>(to + 2) = __floats2half2_rn(v.z, v.w);
}

template <typename T>
__global__ void __launch_bounds__(kStoreWarps * 32)
    store_rows(const Store store, const __grid_constant__ RopeTable table) {
  release_next();
  __shared__ float4 buffers[kStoreWarps][kMaxHead / 4];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int per_row = store.heads_q + 2 * store.kv_heads;
  const int64_t vector = static_cast<int64_t>(blockIdx.x) * kStoreWarps + warp;
  const int64_t row = vector / per_row;
  if (row >= store.rows) return;
  const int head = static_cast<int>(vector % per_row);
  const int kv = head - store.heads_q;  // 0 ... kv_heads - 1: k, from kv_heads on: v
  const bool is_v = kv >= store.kv_heads;
  const int64_t dim = store.head_dim;
  const int64_t position = store.input->first_position + row;

  constexpr int kPairs = kMaxRopePairs / 32;
  float2 angles[kPairs];
  const int pairs = is_v ? 0 : store.pairs;
#pragma unroll
  for (int j = 0; j < kPairs; ++j) {
    const int pair = lane + 32 * j;
    if (pair < pairs) angles[j] = rope_angle(position, table.turns[pair]);
  }

  const float* from = kv < 0 ? store.q + (row * store.heads_q + head) * dim
                      : is_v ? store.v + (row * store.kv_heads + kv - store.kv_heads) * dim
                             : store.k + (row * store.kv_heads + kv) * dim;
  const float* norm = kv < 0 ? store.q_norm : is_v ? nullptr : store.k_norm;
  constexpr int kChunks = kMaxHead / 4 / 32;
  float4 x[kChunks];
  wait_for_previous();
#pragma unroll
  for (int j = 0; j < kChunks; ++j) {
    const int chunk = lane + 32 * j;
    x[j] = 4 * chunk < dim ? reinterpret_cast<const float4*>(from)[chunk] : float4{0, 0, 0, 0};
  }
  if (norm != nullptr) {
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kChunks; ++j) sum = add_squares(sum, x[j]);
    const float scale = rms_scale(warp_sum(sum), dim, store.epsilon);
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      const int i = 4 * (lane + 32 * j);
      if (i >= dim) continue;
      x[j] = {rms_element(x[j].x, scale, norm[i]), rms_element(x[j].y, scale, norm[i + 1]),
              rms_element(x[j].z, scale, norm[i + 2]), rms_element(x[j].w, scale, norm[i + 3])};
    }
  }
  if (pairs > 0) {
    float4* buffer = buffers[warp];
    auto* elements = reinterpret_cast<float*>(buffer);
#pragma unroll
    for (int j = 0; j < kChunks; ++j) buffer[lane + 32 * j] = x[j];
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const int pair = lane + 32 * j;
      if (pair >= pairs) continue;
      float* first = elements + (store.half ? pair : 2 * pair);
      float* second = store.half ? first + pairs : first + 1;
      const float2 rotated = rotate(*first, *second, angles[j]);
      *first = rotated.x;
      *second = rotated.y;
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kChunks; ++j) x[j] = buffer[lane + 32 * j];
  }
#pragma unroll
  for (int j = 0; j < kChunks; ++j) {
    const int i = 4 * (lane + 32 * j);
    if (i >= dim) continue;
    if (kv < 0) {
      store_four(store.q + (row * store.heads_q + head) * dim + i, x[j]);
    } else {
      auto* cache = static_cast<T*>(is_v ? store.cache_v : store.cache_k);
      const int64_t to = (is_v ? kv - store.kv_heads : kv) * store.capacity + position;
      store_four(cache + to * dim + i, x[j]);
    }
  }
}

template <typename T>
void launch_store(const Store& store, const RopeTable& table, KernelContext& context) {
  const int64_t vectors = store.rows * (store.heads_q + 2 * store.kv_heads);
  launch(context, store_rows<T>,
         dim3(static_cast<uint32_t>((vectors + kStoreWarps - 1) / kStoreWarps)),
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
