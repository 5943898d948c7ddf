// One warp a value head and 8 columns of its state, which do not depend on each other: a lane keeps
// every 32nd row of those columns in registers over all rows of the pass, and reads and writes
// whole 32-byte sectors. Nothing is shared, so that no warp waits for another. A decode step is
// bound by reading and writing the states; a longer pass by the shuffles of a row's sums.
//
// Prefill of 2,048 tokens of synth:qwen3.8-27b (4 layers, p4, H200, 2026-11-30): 115,800 tokens/s;
// 73,100 when a row was loaded and scaled where it is needed and every lane had each column's sum.
#include "kernels/cuda/gated_delta_rule.hash.h"
#include "kernels/cuda/key_head.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/row_chunks.cuh"
#include "kernels/cuda/row_math.cuh"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kWarps = 4;
constexpr int kColumns = 8;  // of the state, of one warp
constexpr int kMostKeys = 8;
constexpr int64_t kMostKeyDim = 32 * kMostKeys;

__device__ __forceinline__ float softplus(float x) {
  return x > 20 ? x : log1pf(expf(x));
}

// What a warp reads of one row: a lane's elements of q and k, and its column's v.
template <int kKeys>
struct Inputs {
  float q[kKeys], k[kKeys];
  float a, b, v;
};

// Those of one row as the recurrence wants them.
template <int kKeys>
struct Row {
  float q[kKeys], k[kKeys];
  float decay, beta, v;
};

// Where a warp finds its inputs, and a head's part of the decay.
struct Head {
  const float* q;  // of row 0, as all of these
  const float* k;
  const float* v;  // its lanes' columns, null beyond the last
  const float* a;
  const float* b;
  int64_t qkv_width, heads;  // between rows: of q, k and v; of a and b
  float rate, step_bias;     // exp(a_log), dt_bias
};

template <int kKeys>
__device__ __forceinline__ Inputs<kKeys> load_inputs(const Head& head, int key_dim, int64_t row) {
  const int lane = threadIdx.x % 32;
  const int64_t at = row * head.qkv_width;
  Inputs<kKeys> inputs;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const bool is_there = lane + 32 * i < key_dim;
    inputs.q[i] = is_there ? head.q[at + lane + 32 * i] : 0;
    inputs.k[i] = is_there ? head.k[at + lane + 32 * i] : 0;
  }
  inputs.a = head.a[row * head.heads];
  inputs.b = head.b[row * head.heads];
  inputs.v = head.v == nullptr ? 0 : head.v[at];
  return inputs;
}

template <int kKeys>
__device__ __forceinline__ float inverse_length(const float (&x)[kKeys]) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) sum = __fmaf_rn(x[i], x[i], sum);
  return __fdiv_rn(1.0F, __fsqrt_rn(__fadd_rn(warp_sum(sum), 1e-6F)));
}

template <int kKeys>
__device__ __forceinline__ Row<kKeys> prepared(const Inputs<kKeys>& inputs, const Head& head,
                                               float root) {
  const float q_scale = __fdiv_rn(inverse_length(inputs.q), root);
  const float k_scale = inverse_length(inputs.k);
  Row<kKeys> row;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    row.q[i] = __fmul_rn(inputs.q[i], q_scale);
    row.k[i] = __fmul_rn(inputs.k[i], k_scale);
  }
  const float step = softplus(__fadd_rn(inputs.a, head.step_bias));
  row.decay = expf(-__fmul_rn(head.rate, step));
  row.beta = sigmoid(inputs.b);
  row.v = inputs.v;
  return row;
}

// A lane's part of `count` columns of one state, whose rows are `stride` apart; zeros beyond.
template <int kKeys>
__device__ __forceinline__ void load_state(float (&state)[kKeys][kColumns], const float* from,
                                           int key_dim, int64_t stride, int count, int lane,
                                           bool vector) {
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int row = lane + 32 * i;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) state[i][c] = 0;
    if (row >= key_dim) continue;
    if (vector) {
#pragma unroll
      for (int c = 0; c < kColumns; c += 4) {
        const float4 v = *reinterpret_cast<const float4*>(from + row * stride + c);
        state[i][c] = v.x, state[i][c + 1] = v.y, state[i][c + 2] = v.z, state[i][c + 3] = v.w;
      }
      continue;
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (c < count) state[i][c] = from[row * stride + c];
    }
  }
}

template <int kKeys>
__device__ __forceinline__ void store_state(const float (&state)[kKeys][kColumns], float* to,
                                            int key_dim, int64_t stride, int count, int lane,
                                            bool vector) {
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int64_t row = lane + 32 * i;
    if (row >= key_dim) continue;
    if (vector) {
#pragma unroll
      for (int c = 0; c < kColumns; c += 4) {
        *reinterpret_cast<float4*>(to + row * stride + c) = {state[i][c], state[i][c + 1],
                                                             state[i][c + 2], state[i][c + 3]};
      }
      continue;
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      if (c < count) to[row * stride + c] = state[i][c];
    }
  }
}

// The sum over all lanes of each column, in lanes 4 c ... 4 c + 3 that of column c: by xor 16, 8,
// 4, 2, 1, as warp_sum() adds, but each lane goes on with the half of the columns that will be its
// own.
__device__ __forceinline__ float own_column_sum(const float (&x)[kColumns]) {
  const int lane = threadIdx.x % 32;
  const auto halved = [&](float low, float high, int bit) {
    const bool upper = (lane & bit) != 0;
    const float sent = upper ? low : high;
    return __fadd_rn(upper ? high : low, __shfl_xor_sync(0xffffffffU, sent, bit));
  };
  float four[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) four[c] = halved(x[c], x[c + 4], 16);
  float sum = halved(halved(four[0], four[2], 8), halved(four[1], four[3], 8), 4);
  sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffU, sum, 2));
  return __fadd_rn(sum, __shfl_xor_sync(0xffffffffU, sum, 1));
}

// state = decay * state + k transpose(u); gives transpose(state) q of the lane's own column.
template <int kKeys>
__device__ __forceinline__ float step(float (&state)[kKeys][kColumns], const Row<kKeys>& row) {
  float sums[kColumns] = {};
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      state[i][c] = __fmul_rn(row.decay, state[i][c]);
      sums[c] = __fmaf_rn(state[i][c], row.k[i], sums[c]);
    }
  }
  const float own = __fmul_rn(row.beta, __fsub_rn(row.v, own_column_sum(sums)));
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const float u = __shfl_sync(0xffffffffU, own, 4 * c);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      state[i][c] = __fmaf_rn(row.k[i], u, state[i][c]);
      sum = __fmaf_rn(state[i][c], row.q[i], sum);
    }
    sums[c] = sum;
  }
  return own_column_sum(sums);
}

// `vector`: states may be read 16 bytes at a time, and no warp has fewer than kColumns columns.
template <int kKeys>
__global__ void __launch_bounds__(kWarps * 32)
    run_columns(const __grid_constant__ GatedDeltaRuleArgs args, const StepInput* input,
                bool vector) {
  release_next();
  wait_for_previous();
  const int lane = threadIdx.x % 32;
  const int64_t groups = (args.value_dim + kColumns - 1) / kColumns;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int64_t value_head = task / groups;
  if (value_head >= args.value_heads) return;
  const int64_t first = task % groups * kColumns;
  const int64_t left = args.value_dim - first;
  const int count = left < kColumns ? static_cast<int>(left) : kColumns;
  const int64_t v_width = args.value_heads * args.value_dim;
  const int64_t qk_width = args.key_heads * args.key_dim;
  const int64_t state_size = args.key_dim * v_width;
  const auto key_dim = static_cast<int>(args.key_dim);
  const bool has_column = lane / 4 < count;
  Head head;
  head.q = args.qkv + key_head_of(args, value_head) * args.key_dim;
  head.k = head.q + qk_width;
  head.v = has_column ? args.qkv + 2 * qk_width + value_head * args.value_dim + first + lane / 4
                      : nullptr;
  head.a = args.a + value_head;
  head.b = args.b + value_head;
  head.qkv_width = 2 * qk_width + v_width;
  head.heads = args.value_heads;
  head.rate = expf(args.a_log[value_head]);
  head.step_bias = args.dt_bias[value_head];
  const float root = __fsqrt_rn(static_cast<float>(args.key_dim));
  float* states = args.states + value_head * args.key_dim * args.value_dim + first;
  float* out = args.out + value_head * args.value_dim + first + lane / 4;
  const int64_t position = input->first_position;
  const int64_t last = args.rows - 1;
  float state[kKeys][kColumns] = {};
  if (position > 0) {
    load_state(state, states + position % args.slots * state_size, key_dim, args.value_dim, count,
               lane, vector);
  }
  int64_t slot = (position + 1) % args.slots;  // of the state after row r
  const auto run_row = [&](const Row<kKeys>& row, int64_t r) {
    const float sum = step(state, row);
    if (has_column && lane % 4 == 0) out[r * v_width] = sum;
    if (r > last - args.slots) {
      store_state(state, states + slot * state_size, key_dim, args.value_dim, count, lane, vector);
    }
    if (++slot == args.slots) slot = 0;
  };
  // While a row runs, the next one is prepared and the one after it is loaded.
  Row<kKeys> row = prepared(load_inputs<kKeys>(head, key_dim, 0), head, root);
  Inputs<kKeys> next = load_inputs<kKeys>(head, key_dim, last < 1 ? last : 1);
  for (int64_t r = 0; r < last; ++r) {
    const Inputs<kKeys> later = load_inputs<kKeys>(head, key_dim, r + 2 < last ? r + 2 : last);
    const Row<kKeys> prepared_next = prepared(next, head, root);
    run_row(row, r);
    row = prepared_next;
    next = later;
  }
  run_row(row, last);
}

}  // namespace

void gated_delta_rule_exact(const GatedDeltaRuleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  if (args.key_dim > kMostKeyDim) return fail(context, "keys of more than 256");
  const int64_t warps = args.value_heads * ((args.value_dim + kColumns - 1) / kColumns);
  const dim3 grid(static_cast<uint32_t>((warps + kWarps - 1) / kWarps));
  auto* kernel = args.key_dim <= 32    ? run_columns<1>
                 : args.key_dim <= 64  ? run_columns<2>
                 : args.key_dim <= 128 ? run_columns<4>
                                       : run_columns<kMostKeys>;
  launch(context, kernel, grid, dim3(kWarps * 32), 0, args, queue(context).input,
         aligned_16(args.states) && args.value_dim % kColumns == 0);
}

std::string supports_gated_delta_rule(const OpCall& call) {
  if (call.k <= kMostKeyDim) return "";
  return "keys of " + std::to_string(call.k) + "; it takes up to " + std::to_string(kMostKeyDim);
}

const char* gated_delta_rule_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
