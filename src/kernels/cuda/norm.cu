// One block a row (one warp a row for heads), the row kept in registers between the sum and the
// scaling. A decode step has one row: its time is latency, so a block is 512 threads with one or
// two 16-byte loads each, the weight is fetched before the kernel waits for the one before it, and
// there is an instance for each number of chunks a thread, so that no thread looks for more.
//
// Tried and rejected, in decode steps of llama-8b (65 norms of 4,096 a step, H200, 2026-11-30):
// 256 threads of 32 registers with the row in shared memory, to fit beside two blocks of the matmul
// before it, 5.3 us a norm; 128 threads with 8 chunks each and the weight in shared memory, 4.2;
// the largest shared memory carve-out for every kernel, no faster here and combine_segments slower.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/norm.hash.h"
#include "kernels/cuda/row_chunks.cuh"
#include "kernels/cuda/row_math.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kWarps = kRowWorkers / 32;
constexpr int kMostKept = 4;  // chunks that a thread keeps; the rest of a longer row is re-read

struct Norm {
  const float* x;       // [rows, k]
  const float* addend;  // [rows, k] or null: the row is addend + x and stored to `sum`
  float* sum;           // [rows, k]
  const float* weight;  // [k]
  float* out;           // [rows, k]
  int64_t rows, k;
  float epsilon;
};

__device__ __forceinline__ float4 add4(float4 a, float4 b) {
  return {__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
}

__device__ __forceinline__ float4 scale4(float4 x, float scale, float4 w) {
  return {rms_element(x.x, scale, w.x), rms_element(x.y, scale, w.y), rms_element(x.z, scale, w.z),
          rms_element(x.w, scale, w.w)};
}

// The sum of all workers' sums. kWorkers is 32 (a warp) or kRowWorkers (the block).
template <int kWorkers>
__device__ __forceinline__ float all_workers(float sum) {
  sum = warp_sum(sum);
  if constexpr (kWorkers == 32) return sum;
  __shared__ float warps[kWarps];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = warps[0];
  for (int w = 1; w < kWarps; ++w) total = __fadd_rn(total, warps[w]);
  return total;
}

// Each thread keeps kKept chunks; only where kReread, a row may have more.
template <int kWorkers, bool kVector, int kKept, bool kReread>
__global__ void __launch_bounds__(kRowWorkers) normalise(Norm norm) {
  release_next();
  const int64_t row = kWorkers == 32 ? static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32
                                     : static_cast<int64_t>(blockIdx.x);
  if (row >= norm.rows) return;  // whole warps of a block of rows: no barrier follows for them
  const int worker = threadIdx.x % kWorkers;
  const int64_t k = norm.k;
  const int64_t chunks = (k + 3) / 4;
  const float* x = norm.x + row * k;
  float4 weights[kKept];
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int64_t chunk = worker + static_cast<int64_t>(j) * kWorkers;
    if (chunk < chunks) weights[j] = load_chunk<kVector>(norm.weight, chunk, k);
  }
  wait_for_previous();
  float4 kept[kKept];
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int64_t chunk = worker + static_cast<int64_t>(j) * kWorkers;
    if (chunk < chunks) kept[j] = load_chunk<kVector>(x, chunk, k);
  }
  const float* addend = norm.addend == nullptr ? nullptr : norm.addend + row * k;
  float* sum_row = norm.sum + row * k;
  if (addend != nullptr) {
#pragma unroll
    for (int j = 0; j < kKept; ++j) {
      const int64_t chunk = worker + static_cast<int64_t>(j) * kWorkers;
      if (chunk >= chunks) continue;
      kept[j] = add4(load_chunk<kVector>(addend, chunk, k), kept[j]);
      store_chunk<kVector>(sum_row, chunk, k, kept[j]);
    }
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    if (worker + static_cast<int64_t>(j) * kWorkers < chunks) sum = add_squares(sum, kept[j]);
  }
  for (int64_t chunk = worker + static_cast<int64_t>(kKept) * kWorkers; kReread && chunk < chunks;
       chunk += kWorkers) {
    float4 v = load_chunk<kVector>(x, chunk, k);
    if (addend != nullptr) {
      v = add4(load_chunk<kVector>(addend, chunk, k), v);
      store_chunk<kVector>(sum_row, chunk, k, v);
    }
    sum = add_squares(sum, v);
  }
  const float scale = rms_scale(all_workers<kWorkers>(sum), k, norm.epsilon);
  float* out = norm.out + row * k;
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int64_t chunk = worker + static_cast<int64_t>(j) * kWorkers;
    if (chunk < chunks) store_chunk<kVector>(out, chunk, k, scale4(kept[j], scale, weights[j]));
  }
  const float* again = addend == nullptr ? x : sum_row;
  for (int64_t chunk = worker + static_cast<int64_t>(kKept) * kWorkers; kReread && chunk < chunks;
       chunk += kWorkers) {
    const float4 w = load_chunk<kVector>(norm.weight, chunk, k);
    store_chunk<kVector>(out, chunk, k, scale4(load_chunk<kVector>(again, chunk, k), scale, w));
  }
}

template <int kWorkers, bool kVector>
void launch_row(KernelContext& context, const Norm& norm, dim3 grid, dim3 block) {
  const int64_t kept = ((norm.k + 3) / 4 + kWorkers - 1) / kWorkers;  // chunks a thread
  auto* kernel = kept == 1   ? normalise<kWorkers, kVector, 1, false>
                 : kept == 2 ? normalise<kWorkers, kVector, 2, false>
                 : kept <= 4 ? normalise<kWorkers, kVector, kMostKept, false>
                             : normalise<kWorkers, kVector, kMostKept, true>;
  launch(context, kernel, grid, block, 0, norm);
}

void run(const Norm& norm, KernelContext& context) {
  if (norm.rows == 0) return;
  const bool vector = norm.k % 4 == 0 && aligned_16(norm.x) && aligned_16(norm.addend) &&
                      aligned_16(norm.sum) && aligned_16(norm.weight) && aligned_16(norm.out);
  const auto rows = static_cast<uint32_t>(norm.rows);
  if (norm.k <= kWarpRow) {
    const dim3 grid((rows + kWarps - 1) / kWarps);
    const dim3 block(rows < kWarps ? rows * 32 : kRowWorkers);  // a few heads need no whole block
    vector ? launch_row<32, true>(context, norm, grid, block)
           : launch_row<32, false>(context, norm, grid, block);
  } else {
    vector ? launch_row<kRowWorkers, true>(context, norm, dim3(rows), dim3(kRowWorkers))
           : launch_row<kRowWorkers, false>(context, norm, dim3(rows), dim3(kRowWorkers));
  }
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
