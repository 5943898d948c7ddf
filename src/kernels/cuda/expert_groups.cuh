// The pairs of a row and one of its experts, put together by expert: a tile is up to some number of
// pairs of one expert, which share one pass over its weights. Their order within an expert is that
// of arrival, and no result depends on it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/launch.cuh"

namespace reckon::kernels::cuda {

inline constexpr int64_t kMostExperts = 4096;
inline constexpr int kGroupThreads = 1024;

struct PairTile {
  int expert;
  int first;  // in the order of pairs
  int count;
};

// In scratch; `tile_count` is written on the device, the others' sizes are known before.
struct PairGroups {
  int* order = nullptr;       // [pairs], pair = row * top_k + j
  PairTile* tiles = nullptr;  // [most_tiles()]
  int* tile_count = nullptr;
};

constexpr int64_t most_tiles(int64_t pairs, int64_t experts, int tile_pairs) {
  const int64_t most = pairs / tile_pairs + experts;
  return pairs < most ? pairs : most;
}

// The j-th expert of a row of a selection (expert_args.h), and its weight.
__device__ __forceinline__ int selected_expert(const float* selection, int64_t row, int64_t top_k,
                                               int64_t j) {
  return __float_as_int(selection[row * 2 * top_k + j]);
}
__device__ __forceinline__ float selected_weight(const float* selection, int64_t row, int64_t top_k,
                                                 int64_t j) {
  return selection[row * 2 * top_k + top_k + j];
}

// The sum of `value` over the lanes before this one; `total` over all.
__device__ __forceinline__ int sum_before(int value, int& total) {
  const int lane = threadIdx.x % 32;
  int sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xffffffffU, sum, step);
    if (lane >= step) sum += other;
  }
  total = __shfl_sync(0xffffffffU, sum, 31);
  return sum - value;
}

// One block of kGroupThreads; shared memory for two ints an expert.
static __global__ void __launch_bounds__(kGroupThreads)
    group_pairs(const float* selection, int64_t top_k, int pairs, int experts, int tile_pairs,
                PairGroups groups) {
  extern __shared__ int counts[];  // of each expert
  int* firsts = counts + experts;  // where its next pair goes
  release_next();
  wait_for_previous();
  const auto thread = static_cast<int>(threadIdx.x);
  const auto expert_of = [&](int pair) {
    return selected_expert(selection, pair / top_k, top_k, pair % top_k);
  };
  for (int e = thread; e < experts; e += kGroupThreads) counts[e] = 0;
  __syncthreads();
  for (int pair = thread; pair < pairs; pair += kGroupThreads) {
    atomicAdd(&counts[expert_of(pair)], 1);
  }
  __syncthreads();
  if (thread < 32) {
    int pairs_before = 0;
    int tiles_before = 0;
    for (int base = 0; base < experts; base += 32) {
      const int e = base + thread;
      const int count = e < experts ? counts[e] : 0;
      const int tiles = (count + tile_pairs - 1) / tile_pairs;
      int all_pairs = 0;
      int all_tiles = 0;
      const int first = pairs_before + sum_before(count, all_pairs);
      const int first_tile = tiles_before + sum_before(tiles, all_tiles);
      if (e < experts) firsts[e] = first;
      for (int t = 0; t < tiles; ++t) {
        const int done = t * tile_pairs;
        groups.tiles[first_tile + t] = {e, first + done, min(tile_pairs, count - done)};
      }
      pairs_before += all_pairs;
      tiles_before += all_tiles;
    }
    if (thread == 0) *groups.tile_count = tiles_before;
  }
  __syncthreads();
  for (int pair = thread; pair < pairs; pair += kGroupThreads) {
    groups.order[atomicAdd(&firsts[expert_of(pair)], 1)] = pair;
  }
}

}  // namespace reckon::kernels::cuda
