#include "kernels/cpu/delta_rule.h"

#include <cmath>

namespace reckon::kernels::cpu {
namespace {

struct Job {
  const GatedDeltaRuleArgs* args;
  DeltaInputs inputs;
};

// As torch does it: beyond 20 the difference is below float32's.
float softplus(float x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

// out = x / sqrt(sum of squares + 1e-6) * factor; the sum is float64, ascending.
void normalise(const float* x, int64_t n, float factor, float* out) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const float scale = static_cast<float>(1.0 / std::sqrt(sum + 1e-6)) * factor;
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * scale;
}

// Task: a row.
void prepare_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const GatedDeltaRuleArgs& args = *job.args;
  const int64_t width = args.key_heads * args.key_dim;
  const float* q = args.qkv + row * (2 * width + args.value_heads * args.value_dim);
  const float factor = 1.0F / std::sqrt(static_cast<float>(args.key_dim));
  for (int64_t at = 0; at < width; at += args.key_dim) {
    normalise(q + at, args.key_dim, factor, job.inputs.q + row * width + at);
    normalise(q + width + at, args.key_dim, 1, job.inputs.k + row * width + at);
  }
  for (int64_t h = 0; h < args.value_heads; ++h) {
    const int64_t at = row * args.value_heads + h;
    job.inputs.decay[at] = std::exp(delta_log_decay(args, row, h));
    job.inputs.beta[at] = delta_beta(args, row, h);
  }
}

}  // namespace

float delta_log_decay(const GatedDeltaRuleArgs& args, int64_t row, int64_t head) {
  const float rate = std::exp(args.a_log[head]);
  return -rate * softplus(args.a[row * args.value_heads + head] + args.dt_bias[head]);
}

float delta_beta(const GatedDeltaRuleArgs& args, int64_t row, int64_t head) {
  return 1.0F / (1.0F + std::exp(-args.b[row * args.value_heads + head]));
}

uint64_t delta_scratch_bytes(int64_t rows, int64_t key_heads, int64_t value_heads, int64_t key_dim,
                             int threads) {
  const int64_t inputs = 2 * rows * (key_heads * key_dim + value_heads);
  const int64_t blocks = threads * key_dim * kMostBlockColumns;
  return static_cast<uint64_t>(inputs + blocks) * sizeof(float);
}

DeltaInputs prepare_delta_inputs(const GatedDeltaRuleArgs& args, KernelContext& context) {
  const int threads = thread_count(context);
  const uint64_t bytes =
      delta_scratch_bytes(args.rows, args.key_heads, args.value_heads, args.key_dim, threads);
  const int64_t keys = args.rows * args.key_heads * args.key_dim;
  const int64_t gates = args.rows * args.value_heads;
  Job job{&args, {}};
  job.inputs.blocks = static_cast<float*>(scratch(context, bytes));  // aligned to registers
  job.inputs.q = job.inputs.blocks + threads * args.key_dim * kMostBlockColumns;
  job.inputs.k = job.inputs.q + keys;
  job.inputs.decay = job.inputs.k + keys;
  job.inputs.beta = job.inputs.decay + gates;
  parallel_for(context, args.rows, prepare_row, &job);
  return job.inputs;
}

// Of each thread: the states of a key head's value heads, one of them in bfloat16, too, keys and
// queries in several layouts, and the chunk's products (gated_delta_rule_fast_amx.cpp); behind them
// what the exact steps of the last rows take.
uint64_t fast_delta_scratch_bytes(int64_t key_heads, int64_t value_heads, int64_t key_dim,
                                  int64_t value_dim, int threads) {
  const int64_t state = key_dim * value_dim;
  const int64_t floats = state * (value_heads / key_heads)  // the states
                         + 2 * kDeltaChunk * key_dim        // keys and queries
                         + 2 * kDeltaChunk * kDeltaChunk    // their products
                         + 3 * kDeltaChunk * value_dim      // recalled, outputs, updates
                         + 2 * kDeltaChunk;                 // gates
  const int64_t splits = state + 4 * kDeltaChunk * key_dim  // of two bfloat16: as many bytes
                         + kDeltaChunk * kDeltaChunk + 2 * kDeltaChunk * value_dim;
  const auto bytes = static_cast<int64_t>(sizeof(float)) * (floats + splits);
  return delta_scratch_bytes(kDeltaChunk, key_heads, value_heads, key_dim, threads) +
         static_cast<uint64_t>(threads) * static_cast<uint64_t>((bytes + 63) / 64 * 64) + 64;
}

}  // namespace reckon::kernels::cpu
