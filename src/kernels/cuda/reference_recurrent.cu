// The reference kernels of recurrent layers and of gates. Speed was no aim, as in reference.cu.
#include "kernels/cuda/key_head.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reference.h"
#include "kernels/cuda/reference_recurrent.hash.h"
#include "kernels/cuda/reference_threads.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "reference";

__device__ float sigmoid_of(float x) {
  return 1.0F / (1.0F + expf(-x));
}

// The input of a position of the channel: of this call, of an earlier one, or before the first.
__device__ float input_at(const CausalConvArgs& args, int64_t first, int64_t position,
                          int64_t channel) {
  if (position < 0) return 0;
  if (position >= first) return args.x[(position - first) * args.channels + channel];
  return args.inputs[position % args.ring * args.channels + channel];
}

// One thread a channel, which is done for all rows before its inputs are stored.
__global__ void convolve(CausalConvArgs args, const StepInput* input) {
  wait_for_previous();
  const int64_t channel = thread_index();
  if (channel >= args.channels) return;
  const int64_t first = input->first_position;
  for (int64_t r = 0; r < args.rows; ++r) {
    float sum = 0;
    for (int64_t j = 0; j < args.width; ++j) {
      sum += args.weight[channel * args.width + j] *
             input_at(args, first, first + r - (args.width - 1) + j, channel);
    }
    args.out[r * args.channels + channel] = sum * sigmoid_of(sum);
  }
  for (int64_t r = args.rows > args.ring ? args.rows - args.ring : 0; r < args.rows; ++r) {
    args.inputs[(first + r) % args.ring * args.channels + channel] =
        args.x[r * args.channels + channel];
  }
}

__device__ float inverse_length(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return static_cast<float>(1.0 / sqrt(sum + 1e-6));
}

__device__ float decay_of(const GatedDeltaRuleArgs& args, int64_t row, int64_t head) {
  const float step = args.a[row * args.value_heads + head] + args.dt_bias[head];
  const float softplus = step > 20 ? step : log1pf(expf(step));
  return expf(-expf(args.a_log[head]) * softplus);
}

// One thread a column of a value head's state.
__global__ void recur(GatedDeltaRuleArgs args, const StepInput* input) {
  wait_for_previous();
  const int64_t v_width = args.value_heads * args.value_dim;
  const int64_t column = thread_index();
  if (column >= v_width) return;
  const int64_t head = column / args.value_dim;
  const int64_t qk_width = args.key_heads * args.key_dim;
  float* states = args.states + head * args.key_dim * args.value_dim + column % args.value_dim;
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t position = input->first_position + r;
    const float* q =
        args.qkv + r * (2 * qk_width + v_width) + key_head_of(args, head) * args.key_dim;
    const float* k = q + qk_width;
    const float q_scale = inverse_length(q, args.key_dim) / sqrtf(static_cast<float>(args.key_dim));
    const float k_scale = inverse_length(k, args.key_dim);
    const float decay = decay_of(args, r, head);
    const float beta = sigmoid_of(args.b[r * args.value_heads + head]);
    const float* before = states + position % args.slots * args.key_dim * v_width;
    float* after = states + (position + 1) % args.slots * args.key_dim * v_width;
    float recalled = 0;
    for (int64_t i = 0; i < args.key_dim; ++i) {
      const int64_t at = i * args.value_dim;
      after[at] = position == 0 ? 0.0F : decay * before[at];
      recalled += after[at] * (k[i] * k_scale);
    }
    const float v = args.qkv[r * (2 * qk_width + v_width) + 2 * qk_width + column];
    float sum = 0;
    for (int64_t i = 0; i < args.key_dim; ++i) {
      float& state = after[i * args.value_dim];
      state += k[i] * k_scale * (beta * (v - recalled));
      sum += state * (q[i] * q_scale);
    }
    args.out[r * v_width + column] = sum;
  }
}

// One warp a row.
__global__ void normalise_gated(GatedRmsNormArgs args) {
  wait_for_previous();
  const int64_t row = warp_index();
  if (row >= args.rows) return;
  const float* x = args.x + row * args.k;
  const float* z = args.z + row * args.k;
  double sum = 0;
  for (int64_t i = threadIdx.x % 32; i < args.k; i += 32) {
    const double value = x[i];
    sum += value * value;
  }
  const double mean = warp_total(sum) / static_cast<double>(args.k);
  const auto scale = static_cast<float>(1.0 / sqrt(mean + static_cast<double>(args.epsilon)));
  for (int64_t i = threadIdx.x % 32; i < args.k; i += 32) {
    args.out[row * args.k + i] = x[i] * scale * args.weight[i] * (z[i] * sigmoid_of(z[i]));
  }
}

// One thread an element of q.
__global__ void split(SplitGateArgs args) {
  wait_for_previous();
  const int64_t i = thread_index();
  if (i >= args.rows * args.heads * args.dim) return;
  const float* head = args.x + i / args.dim * 2 * args.dim;
  args.q[i] = head[i % args.dim];
  args.gate[i] = head[args.dim + i % args.dim];
}

__global__ void gate(SigmoidGateArgs args) {
  wait_for_previous();
  const int64_t i = thread_index();
  if (i < args.rows * args.k) args.x[i] *= sigmoid_of(args.gate[i]);
}

__global__ void add_gated(GatedAddArgs args) {
  wait_for_previous();
  const int64_t i = thread_index();
  if (i < args.rows * args.k) args.out[i] += sigmoid_of(args.gate[i / args.k]) * args.y[i];
}

__global__ void join(ConcatArgs args) {
  wait_for_previous();
  const int64_t i = thread_index();
  const int64_t width = args.a_columns + args.b_columns;
  if (i >= args.rows * width) return;
  const int64_t row = i / width;
  const int64_t column = i % width;
  args.out[i] = column < args.a_columns ? args.a[row * args.a_columns + column]
                                        : args.b[row * args.b_columns + column - args.a_columns];
}

// One launch of a thread each for `count`, none for no rows.
template <typename Kernel, typename... Arguments>
void run_threads(KernelContext& context, Kernel* kernel, int64_t count,
                 const Arguments&... arguments) {
  if (count == 0) return;
  launch(context, kernel, threads_for(count), dim3(kReferenceThreads), 0, arguments...);
}

}  // namespace

void causal_conv_reference(const CausalConvArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  run_threads(context, convolve, args.channels, args, queue(context).input);
}

void gated_delta_rule_reference(const GatedDeltaRuleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  run_threads(context, recur, args.value_heads * args.value_dim, args, queue(context).input);
}

void gated_rms_norm_reference(const GatedRmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  launch(context, normalise_gated, warps_for(args.rows), dim3(kReferenceThreads), 0, args);
}

void split_gate_reference(const SplitGateArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run_threads(context, split, args.rows * args.heads * args.dim, args);
}

void sigmoid_gate_reference(const SigmoidGateArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run_threads(context, gate, args.rows * args.k, args);
}

void gated_add_reference(const GatedAddArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run_threads(context, add_gated, args.rows * args.k, args);
}

void concat_reference(const ConcatArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run_threads(context, join, args.rows * (args.a_columns + args.b_columns), args);
}

const char* recurrent_reference_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
