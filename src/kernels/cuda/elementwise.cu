// Bound by memory when rows are many and by latency when they are few: 16-byte accesses, a grid
// that covers the elements once.
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/elementwise.hash.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/rope_table.h"
#include "kernels/cuda/row_chunks.cuh"
#include "kernels/cuda/row_math.cuh"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kThreads = 256;

struct Add {
  static __device__ float apply(float x, float y) { return __fadd_rn(x, y); }
};

struct Swiglu {
  static __device__ float apply(float gate, float up) { return swiglu_element(gate, up); }
};

struct SigmoidGate {
  static __device__ float apply(float x, float gate) { return __fmul_rn(x, sigmoid(gate)); }
};

// out[i] = F(a[i], b[i]); in place allowed.
template <typename F>
__global__ void __launch_bounds__(kThreads)
    combine(const float* a, const float* b, float* out, int64_t count, bool vector) {
  release_next();
  wait_for_previous();
  const int64_t i = 4 * (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x);
  if (vector && i + 4 <= count) {
    const float4 x = *reinterpret_cast<const float4*>(a + i);
    const float4 y = *reinterpret_cast<const float4*>(b + i);
    *reinterpret_cast<float4*>(out + i) = {F::apply(x.x, y.x), F::apply(x.y, y.y),
                                           F::apply(x.z, y.z), F::apply(x.w, y.w)};
    return;
  }
  for (int64_t j = i; j < i + 4 && j < count; ++j) out[j] = F::apply(a[j], b[j]);
}

uint32_t blocks_for(int64_t count, int64_t per_block) {
  return static_cast<uint32_t>((count + per_block - 1) / per_block);
}

template <typename F>
void run(KernelContext& context, const float* a, const float* b, float* out, int64_t count) {
  if (count == 0) return;
  launch(context, combine<F>, dim3(blocks_for(count, 4 * kThreads)), dim3(kThreads), 0, a, b, out,
         count, aligned_16(a) && aligned_16(b) && aligned_16(out));
}

struct RopeCall {
  float* x;  // [rows, heads, head_dim]
  const StepInput* input;
  int64_t rows;
  int heads, head_dim, pairs;
  bool half;
};

constexpr int kRopeHeads = 4;  // of a thread, which computes their angle once

__global__ void __launch_bounds__(kThreads)
    rotate_pairs(const RopeCall call, const __grid_constant__ RopeTable table) {
  release_next();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int pair = static_cast<int>(i % call.pairs);
  const int parts = (call.heads + kRopeHeads - 1) / kRopeHeads;
  const int64_t row = i / call.pairs / parts;
  if (row >= call.rows) return;
  const int first_head = static_cast<int>(i / call.pairs % parts) * kRopeHeads;
  const float2 angle = rope_angle(call.input->first_position + row, table.turns[pair]);
  float* first =
      call.x + (row * call.heads + first_head) * call.head_dim + (call.half ? pair : 2 * pair);
  float* second = call.half ? first + call.pairs : first + 1;
  wait_for_previous();
  float a[kRopeHeads];
  float b[kRopeHeads];
#pragma unroll
  for (int h = 0; h < kRopeHeads; ++h) {
    if (first_head + h >= call.heads) continue;
    a[h] = first[h * call.head_dim];
    b[h] = second[h * call.head_dim];
  }
#pragma unroll
  for (int h = 0; h < kRopeHeads; ++h) {
    if (first_head + h >= call.heads) continue;
    const float2 rotated = rotate(a[h], b[h], angle);
    first[h * call.head_dim] = rotated.x;
    second[h * call.head_dim] = rotated.y;
  }
}

}  // namespace

void add_exact(const AddArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run<Add>(context, args.x, args.y, args.out, args.rows * args.k);
}

void swiglu_exact(const SwigluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run<Swiglu>(context, args.gate, args.up, args.out, args.rows * args.k);
}

void sigmoid_gate_exact(const SigmoidGateArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run<SigmoidGate>(context, args.x, args.gate, args.x, args.rows * args.k);
}

void rope_exact(const RopeArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const int64_t pairs = args.dims / 2;
  if (pairs > kMaxRopePairs) return fail(context, "more than 256 rotated dimensions");
  const int64_t count = args.rows * ((args.heads + kRopeHeads - 1) / kRopeHeads) * pairs;
  if (count == 0) return;
  const RopeCall call{args.x,
                      queue(context).input,
                      args.rows,
                      static_cast<int>(args.heads),
                      static_cast<int>(args.head_dim),
                      static_cast<int>(pairs),
                      args.pairing == RopePairing::kHalf};
  launch(context, rotate_pairs, dim3(blocks_for(count, kThreads)), dim3(kThreads), 0, call,
         rope_table(args.dims, args.base));
}

const char* add_exact_hash() {
  return kSourceHash;
}

const char* swiglu_exact_hash() {
  return kSourceHash;
}

const char* sigmoid_gate_exact_hash() {
  return kSourceHash;
}

const char* rope_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
