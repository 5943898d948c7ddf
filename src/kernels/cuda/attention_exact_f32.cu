// Exact attention over a cache of f32, in float32 throughout: for small models, oracles and tests
// of the f16 kernels. One block a row and head reads the head's whole cache, without sharing it
// within a group; blocks of 64 positions are dealt to the warps by their index, so that a row's
// bits depend on its position alone. Inside, a lane computes the scores of two positions (4
// interleaved sums over the columns), then takes every 32nd column of the values.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_exact_f32.hash.h"
#include "kernels/cuda/attention_store.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_simt";
constexpr int kWarps = 8;
constexpr int kBlock = 64;  // positions
constexpr int kMostColumns = kMaxHead / 32;
constexpr unsigned kAllLanes = 0xffffffffU;

struct Call {
  const float* q;
  const float* keys;
  const float* values;
  float* out;
  const StepInput* input;
  int64_t capacity;
  int heads, kv_heads, head_dim;
  float scale;
};

__device__ __forceinline__ float dot(const float* q, const float* key, int dim) {
  float sums[4] = {};
  for (int i = 0; i < dim; i += 4) {
    const float4 a = *reinterpret_cast<const float4*>(q + i);
    const float4 b = *reinterpret_cast<const float4*>(key + i);
    sums[0] = __fmaf_rn(a.x, b.x, sums[0]);
    sums[1] = __fmaf_rn(a.y, b.y, sums[1]);
    sums[2] = __fmaf_rn(a.z, b.z, sums[2]);
    sums[3] = __fmaf_rn(a.w, b.w, sums[3]);
  }
  return __fadd_rn(__fadd_rn(sums[0], sums[1]), __fadd_rn(sums[2], sums[3]));
}

__device__ __forceinline__ float weight_of(float score, float largest) {
  return expf(__fsub_rn(score, largest == -INFINITY ? 0 : largest));
}

__global__ void __launch_bounds__(kWarps * 32) attend(const Call call) {
  release_next();
  __shared__ alignas(16) float query[kMaxHead];
  __shared__ float outs[kWarps][kMaxHead];
  __shared__ float states[kWarps][2];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int dim = call.head_dim;
  const int head = static_cast<int>(blockIdx.x % call.heads);
  const int64_t row = blockIdx.x / call.heads;
  const int positions = static_cast<int>(call.input->first_position + row) + 1;
  const int64_t cache = head / (call.heads / call.kv_heads) * call.capacity * dim;
  const float* keys = call.keys + cache;
  const float* values = call.values + cache;
  wait_for_previous();
  const int64_t vector = static_cast<int64_t>(blockIdx.x) * dim;
  for (int i = threadIdx.x; i < dim; i += kWarps * 32) query[i] = call.q[vector + i];
  __syncthreads();

  float largest = -INFINITY;
  float sum = 0;
  float out[kMostColumns] = {};
  for (int first = warp * kBlock; first < positions; first += kWarps * kBlock) {
    const int count = min(kBlock, positions - first);
    float scores[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int p = lane + 32 * h;
      const int64_t at = static_cast<int64_t>(first + p) * dim;
      scores[h] = p < count ? __fmul_rn(dot(query, keys + at, dim), call.scale) : -INFINITY;
    }
    const float most = fmaxf(largest, warp_max(fmaxf(scores[0], scores[1])));
    const float shrink = weight_of(largest, most);
    largest = most;
    scores[0] = weight_of(scores[0], most);
    scores[1] = weight_of(scores[1], most);
    sum = __fmaf_rn(sum, shrink, warp_sum(__fadd_rn(scores[0], scores[1])));
#pragma unroll
    for (int j = 0; j < kMostColumns; ++j) out[j] = __fmul_rn(out[j], shrink);
    for (int p = 0; p < count; ++p) {
      const float weight = __shfl_sync(kAllLanes, p < 32 ? scores[0] : scores[1], p % 32);
      const float* value = values + static_cast<int64_t>(first + p) * dim;
#pragma unroll
      for (int j = 0; j < kMostColumns; ++j) {
        const int column = lane + 32 * j;
        if (column < dim) out[j] = __fmaf_rn(weight, value[column], out[j]);
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kMostColumns; ++j) outs[warp][lane + 32 * j] = out[j];
  if (lane == 0) {
    states[warp][0] = largest;
    states[warp][1] = sum;
  }
  __syncthreads();

  // Warps without a block hold -inf, 0 and zeros, and change nothing.
  float most = states[0][0];
  for (int w = 1; w < kWarps; ++w) most = fmaxf(most, states[w][0]);
  for (int column = threadIdx.x; column < dim; column += kWarps * 32) {
    float total = 0;
    float result = 0;
    for (int w = 0; w < kWarps; ++w) {
      const float weight = weight_of(states[w][0], most);
      total = __fmaf_rn(states[w][1], weight, total);
      result = __fmaf_rn(outs[w][column], weight, result);
    }
    call.out[vector + column] = __fmul_rn(result, __fdiv_rn(1.0F, total));
  }
}

void run(const AttentionArgs& args, KernelContext& context) {
  const Call call{args.q,
                  static_cast<const float*>(args.cache_k),
                  static_cast<const float*>(args.cache_v),
                  args.out,
                  queue(context).input,
                  args.capacity,
                  static_cast<int>(args.heads),
                  static_cast<int>(args.kv_heads),
                  static_cast<int>(args.head_dim),
                  args.scale};
  launch(context, attend, dim3(static_cast<uint32_t>(args.rows * args.heads)), dim3(kWarps * 32), 0,
         call);
}

}  // namespace

void attention_exact_simt(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  store_keys<float>(args, context);
  run(args, context);
}

void rope_attention_exact_simt(const RopeAttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.attention.rows == 0) return;
  rotate_and_store<float>(args, context);
  run(args.attention, context);
}

const char* attention_exact_simt_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
