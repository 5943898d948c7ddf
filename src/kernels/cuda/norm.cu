// One block a row, kept in shared memory between the sum and the scaling; one warp a row for heads,
// kept in registers. A decode step has one row, whose time is latency: the block must find room
// beside two blocks of the matmul before it (704 threads of 80 registers), or it starts when one of
// them ends. So it is 256 threads of 32 registers; with 512 of 64 a norm in a decode step of
// llama-8b took 4.0 us where the matmul left no room, and 2.4 where it did (H200).
#include <cuda_pipeline.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm.hash.h"
#include "kernels/cuda/row_math.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kHeads = 16;                    // rows of a warp each that share a block
constexpr int kKept = kWarpRow / 4 / 32;      // chunks of a head's lane
constexpr int kRowThreads = kRowWorkers / 2;  // a thread stands for workers t and t + kRowThreads
constexpr int kKeptChunks = 2048;             // of a row; the rest of a longer one is re-read

struct Norm {
  const float* x;       // [rows, k]
  const float* addend;  // [rows, k] or null: the row is addend + x and stored to `sum`
  float* sum;           // [rows, k]
  const float* weight;  // [k]
  float* out;           // [rows, k]
  int64_t rows, k;
  float epsilon;
};

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

__device__ __forceinline__ float4 add4(float4 a, float4 b) {
  return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
}

__device__ __forceinline__ float4 scale4(float4 x, float scale, float4 w) {
  return {rms_element(x.x, scale, w.x), rms_element(x.y, scale, w.y), rms_element(x.z, scale, w.z),
          rms_element(x.w, scale, w.w)};
}

// A warp a row of up to kWarpRow elements.
template <bool kVector>
__global__ void __launch_bounds__(32 * kHeads) normalise_heads(Norm norm) {
  release_next();
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kHeads + threadIdx.x / 32;
  if (row >= norm.rows) return;
  const int lane = threadIdx.x % 32;
  const int64_t k = norm.k;
  const int64_t chunks = (k + 3) / 4;
  float4 weights[kKept];
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int64_t chunk = lane + 32 * j;
    if (chunk < chunks) weights[j] = load_chunk<kVector>(norm.weight, chunk, k);
  }
  wait_for_previous();
  float4 kept[kKept];
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int64_t chunk = lane + 32 * j;
    if (chunk < chunks) kept[j] = load_chunk<kVector>(norm.x + row * k, chunk, k);
  }
  if (norm.addend != nullptr) {
#pragma unroll
    for (int j = 0; j < kKept; ++j) {
      const int64_t chunk = lane + 32 * j;
      if (chunk >= chunks) continue;
      kept[j] = add4(load_chunk<kVector>(norm.addend + row * k, chunk, k), kept[j]);
      store_chunk<kVector>(norm.sum + row * k, chunk, k, kept[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    if (lane + 32 * j < chunks) sum = add_squares(sum, kept[j]);
  }
  const float scale = rms_scale(warp_sum(sum), k, norm.epsilon);
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int64_t chunk = lane + 32 * j;
    if (chunk < chunks) {
      store_chunk<kVector>(norm.out + row * k, chunk, k, scale4(kept[j], scale, weights[j]));
    }
  }
}

// Starts bringing a chunk of a row into shared memory; only this thread looks at it.
template <bool kVector>
__device__ __forceinline__ void fetch_chunk(float4* to, const float* row, int64_t chunk,
                                            int64_t k) {
  if constexpr (kVector) {
    __pipeline_memcpy_async(to, row + 4 * chunk, sizeof(float4));
  } else {
    *to = load_chunk<kVector>(row, chunk, k);
  }
}

// The sum of all workers' sums: of this thread's first worker and its second.
__device__ __forceinline__ float all_workers(float first, float second) {
  constexpr int kWarps = kRowThreads / 32;
  __shared__ float warps[2 * kWarps];
  first = warp_sum(first);
  second = warp_sum(second);
  if (threadIdx.x % 32 == 0) {
    warps[threadIdx.x / 32] = first;
    warps[kWarps + threadIdx.x / 32] = second;
  }
  __syncthreads();
  float total = warps[0];
  for (int w = 1; w < 2 * kWarps; ++w) total = __fadd_rn(total, warps[w]);
  return total;
}

// A block a row. Dynamic shared memory: the row's first kKeptChunks chunks, then the addend's.
template <bool kVector>
__global__ void __launch_bounds__(kRowThreads, 8) normalise_row(Norm norm) {
  release_next();
  extern __shared__ float4 kept[];
  const int64_t k = norm.k;
  const int64_t chunks = (k + 3) / 4;
  const int64_t kept_chunks = min(chunks, int64_t{kKeptChunks});
  float4* addends = kept + kept_chunks;
  const int64_t start = static_cast<int64_t>(blockIdx.x) * k;
  const float* x = norm.x + start;
  const float* addend = norm.addend == nullptr ? nullptr : norm.addend + start;
  float* sum_row = norm.sum + start;
  for (int64_t chunk = threadIdx.x; chunk < kept_chunks; chunk += kRowThreads) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(norm.weight + 4 * chunk));
  }
  wait_for_previous();
  for (int64_t chunk = threadIdx.x; chunk < kept_chunks; chunk += kRowThreads) {
    fetch_chunk<kVector>(kept + chunk, x, chunk, k);
    if (addend != nullptr) fetch_chunk<kVector>(addends + chunk, addend, chunk, k);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  const auto take = [&](int64_t chunk, float sum) {
    const bool here = chunk < kept_chunks;
    float4 v = here ? kept[chunk] : load_chunk<kVector>(x, chunk, k);
    if (addend != nullptr) {
      v = add4(here ? addends[chunk] : load_chunk<kVector>(addend, chunk, k), v);
      store_chunk<kVector>(sum_row, chunk, k, v);
      if (here) kept[chunk] = v;
    }
    return add_squares(sum, v);
  };
  float first = 0, second = 0;
  for (int64_t chunk = threadIdx.x; chunk < chunks; chunk += kRowWorkers) {
    first = take(chunk, first);
    if (chunk + kRowThreads < chunks) second = take(chunk + kRowThreads, second);
  }
  const float scale = rms_scale(all_workers(first, second), k, norm.epsilon);
  const float* again = addend == nullptr ? x : sum_row;
  for (int64_t chunk = threadIdx.x; chunk < chunks; chunk += kRowThreads) {
    const float4 w = load_chunk<kVector>(norm.weight, chunk, k);
    const float4 v = chunk < kept_chunks ? kept[chunk] : load_chunk<kVector>(again, chunk, k);
    store_chunk<kVector>(norm.out + start, chunk, k, scale4(v, scale, w));
  }
}

bool aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

void run(const Norm& norm, KernelContext& context) {
  if (norm.rows == 0) return;
  const bool vector = norm.k % 4 == 0 && aligned(norm.x) && aligned(norm.addend) &&
                      aligned(norm.sum) && aligned(norm.weight) && aligned(norm.out);
  const auto rows = static_cast<uint32_t>(norm.rows);
  if (norm.k <= kWarpRow) {
    const dim3 grid((rows + kHeads - 1) / kHeads);
    const dim3 block(32 * (rows < kHeads ? rows : kHeads));  // a few heads need no whole block
    launch(context, vector ? normalise_heads<true> : normalise_heads<false>, grid, block, 0, norm);
    return;
  }
  const int64_t chunks = (norm.k + 3) / 4;
  const int64_t kept = (chunks < kKeptChunks ? chunks : kKeptChunks) * (norm.addend ? 2 : 1);
  launch(context, vector ? normalise_row<true> : normalise_row<false>, dim3(rows),
         dim3(kRowThreads), static_cast<uint32_t>(kept * sizeof(float4)), norm);
}

}  // namespace

void rms_norm_exact(const RmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run({args.x, nullptr, nullptr, args.weight, args.out, args.rows, args.k, args.epsilon}, context);
}

void add_rms_norm_exact(const AddRmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run({args.x, args.residual, args.residual, args.weight, args.out, args.rows, args.k,
       args.epsilon},
      context);
}

const char* rms_norm_exact_hash() {
  return kSourceHash;
}

const char* add_rms_norm_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
