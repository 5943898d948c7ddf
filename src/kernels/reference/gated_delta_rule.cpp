// The sums of squares of q and k are float64 sums in ascending order, the products with the state
// float32 ones in ascending order of its rows; everything else is float32, one operation at a time.
#include <cmath>

#include "kernels/reference/gated_delta_rule.hash.h"
#include "kernels/reference/kernels.h"

namespace reckon::kernels::reference {
namespace {

constexpr int64_t kColumns = 16;  // of the state, which do not depend on each other

float softplus(float x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

// 1 / sqrt(sum of squares + 1e-6)
float inverse_length(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return static_cast<float>(1.0 / std::sqrt(sum + 1e-6));
}

// One row of one value head.
struct Step {
  const float* q;
  const float* k;
  float q_scale, k_scale;
  float decay, beta;
  const float* before;  // the state, null for zeros
  float* after;
};

int64_t key_head_of(const GatedDeltaRuleArgs& args, int64_t head) {
  return args.key_order == KeyHeadOrder::kTiled ? head % args.key_heads
                                                : head / (args.value_heads / args.key_heads);
}

Step step_of(const GatedDeltaRuleArgs& args, int64_t row, int64_t head) {
  const int64_t position = args.first_position + row;
  const int64_t qk = args.key_heads * args.key_dim;
  const int64_t state = args.value_heads * args.key_dim * args.value_dim;
  const int64_t own = head * args.key_dim * args.value_dim;
  const int64_t gate = row * args.value_heads + head;
  const float* heads = args.qkv + row * (2 * qk + args.value_heads * args.value_dim);
  Step step{};
  step.q = heads + key_head_of(args, head) * args.key_dim;
  step.k = step.q + qk;
  step.q_scale = inverse_length(step.q, args.key_dim) / std::sqrt(static_cast<float>(args.key_dim));
  step.k_scale = inverse_length(step.k, args.key_dim);
  step.decay = std::exp(-std::exp(args.a_log[head]) * softplus(args.a[gate] + args.dt_bias[head]));
  step.beta = 1.0F / (1.0F + std::exp(-args.b[gate]));
  step.before = position == 0 ? nullptr : args.states + position % args.slots * state + own;
  step.after = args.states + (position + 1) % args.slots * state + own;
  return step;
}

// Columns [first, first + count) of the head's state; v and out are the head's.
void step_columns(const GatedDeltaRuleArgs& args, const Step& step, const float* v, float* out,
                  int64_t first, int64_t count) {
  float recalled[kColumns] = {};
  for (int64_t i = 0; i < args.key_dim; ++i) {
    const float key = step.k[i] * step.k_scale;
    for (int64_t c = 0; c < count; ++c) {
      const int64_t at = i * args.value_dim + first + c;
      step.after[at] = step.before == nullptr ? 0.0F : step.decay * step.before[at];
      recalled[c] += step.after[at] * key;
    }
  }
  float sums[kColumns] = {};
  for (int64_t i = 0; i < args.key_dim; ++i) {
    const float key = step.k[i] * step.k_scale;
    const float query = step.q[i] * step.q_scale;
    for (int64_t c = 0; c < count; ++c) {
      float& state = step.after[i * args.value_dim + first + c];
      state += key * (step.beta * (v[first + c] - recalled[c]));
      sums[c] += state * query;
    }
  }
  for (int64_t c = 0; c < count; ++c) out[first + c] = sums[c];
}

// Task: one value head, row by row.
void run_head(void* argument, int64_t head, int /*thread*/) {
  const auto& args = *static_cast<const GatedDeltaRuleArgs*>(argument);
  const int64_t qk = 2 * args.key_heads * args.key_dim;
  const int64_t v_width = args.value_heads * args.value_dim;
  for (int64_t r = 0; r < args.rows; ++r) {
    const Step step = step_of(args, r, head);
    const float* v = args.qkv + r * (qk + v_width) + qk + head * args.value_dim;
    float* out = args.out + r * v_width + head * args.value_dim;
    for (int64_t first = 0; first < args.value_dim; first += kColumns) {
      const int64_t left = args.value_dim - first;
      step_columns(args, step, v, out, first, left < kColumns ? left : kColumns);
    }
  }
}

}  // namespace

void gated_delta_rule(const GatedDeltaRuleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  GatedDeltaRuleArgs copy = args;
  parallel_for(context, args.value_heads, run_head, &copy);
}

const char* gated_delta_rule_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
