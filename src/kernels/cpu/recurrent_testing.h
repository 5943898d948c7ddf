// Sequences for the tests of recurrent layers, and what they give in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cpu/kernel_testing.h"

namespace reckon::kernels::testing {

inline double silu(double x) {
  return x / (1 + std::exp(-x));
}

// A sequence through one layer's causal convolution.
struct Convolution {
  int64_t length, channels, width, ring;
  std::vector<float> x, weight;

  Convolution(int64_t rows, int64_t columns, int64_t taps, int64_t slots, Random& random)
      : length(rows),
        channels(columns),
        width(taps),
        ring(slots),
        x(random.floats(rows * columns)),
        weight(random.floats(columns * taps)) {}

  // What was in the ring before must not matter.
  [[nodiscard]] std::vector<float> fresh_state() const {
    return std::vector<float>(static_cast<size_t>(ring * channels), std::nanf(""));
  }

  [[nodiscard]] CausalConvArgs args(std::vector<float>& inputs, std::vector<float>& out,
                                    int64_t first, int64_t rows) const {
    return {.x = x.data() + first * channels,
            .weight = weight.data(),
            .inputs = inputs.data(),
            .out = out.data() + first * channels,
            .rows = rows,
            .channels = channels,
            .width = width,
            .ring = ring,
            .first_position = first};
  }

  [[nodiscard]] std::vector<float> expected() const {
    std::vector<float> out(x.size());
    for (int64_t p = 0; p < length; ++p) {
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < width; ++j) {
          const int64_t from = p - (width - 1) + j;
          if (from < 0) continue;
          sum += static_cast<double>(weight[c * width + j]) *
                 static_cast<double>(x[from * channels + c]);
        }
        out[p * channels + c] = static_cast<float>(silu(sum));
      }
    }
    return out;
  }
};

// A sequence through one layer's gated delta rule.
struct DeltaRule {
  int64_t length, key_heads, value_heads, key_dim, value_dim, slots;
  int64_t qkv_width, out_width, state_size;
  KeyHeadOrder key_order;
  std::vector<float> qkv, a, b, a_log, dt_bias;

  struct Heads {
    int64_t key, value, key_dim, value_dim;
    KeyHeadOrder key_order = KeyHeadOrder::kConsecutive;
  };

  DeltaRule(int64_t rows, const Heads& heads, int64_t states, Random& random)
      : length(rows),
        key_heads(heads.key),
        value_heads(heads.value),
        key_dim(heads.key_dim),
        value_dim(heads.value_dim),
        slots(states),
        qkv_width(2 * key_heads * key_dim + value_heads * value_dim),
        out_width(value_heads * value_dim),
        state_size(value_heads * key_dim * value_dim),
        key_order(heads.key_order),
        qkv(random.floats(rows * qkv_width)),
        a(random.floats(rows * value_heads)),
        b(random.floats(rows * value_heads)),
        a_log(random.floats(value_heads, 0.5F)),
        dt_bias(random.floats(value_heads)) {}

  [[nodiscard]] std::vector<float> fresh_state() const {
    return std::vector<float>(static_cast<size_t>(slots * state_size), std::nanf(""));
  }

  [[nodiscard]] GatedDeltaRuleArgs args(std::vector<float>& states, std::vector<float>& out,
                                        int64_t first, int64_t rows) const {
    return {.qkv = qkv.data() + first * qkv_width,
            .a = a.data() + first * value_heads,
            .b = b.data() + first * value_heads,
            .a_log = a_log.data(),
            .dt_bias = dt_bias.data(),
            .states = states.data(),
            .out = out.data() + first * out_width,
            .rows = rows,
            .key_heads = key_heads,
            .value_heads = value_heads,
            .key_dim = key_dim,
            .value_dim = value_dim,
            .slots = slots,
            .first_position = first,
            .key_order = key_order};
  }

  // Head h of row r, in float64; `state` is the head's, before and after.
  void step(int64_t r, int64_t h, std::vector<double>& state, float* out) const {
    const bool tiled = key_order == KeyHeadOrder::kTiled;
    const int64_t key_head = tiled ? h % key_heads : h / (value_heads / key_heads);
    const float* q = qkv.data() + r * qkv_width + key_head * key_dim;
    const float* k = q + key_heads * key_dim;
    const float* v = qkv.data() + r * qkv_width + 2 * key_heads * key_dim + h * value_dim;
    const auto inverse_length = [&](const float* values) {
      double sum = 1e-6;
      for (int64_t i = 0; i < key_dim; ++i) sum += static_cast<double>(values[i]) * values[i];
      return 1 / std::sqrt(sum);
    };
    const double to_q = inverse_length(q) / std::sqrt(static_cast<double>(key_dim));
    const double to_k = inverse_length(k);
    const double step_size = static_cast<double>(a[r * value_heads + h]) + dt_bias[h];
    const double decay =
        std::exp(-std::exp(static_cast<double>(a_log[h])) * std::log1p(std::exp(step_size)));
    const double beta = 1 / (1 + std::exp(-static_cast<double>(b[r * value_heads + h])));
    for (double& value : state) value *= decay;
    for (int64_t j = 0; j < value_dim; ++j) {
      double recalled = 0;
      for (int64_t i = 0; i < key_dim; ++i) recalled += state[i * value_dim + j] * k[i] * to_k;
      double sum = 0;
      for (int64_t i = 0; i < key_dim; ++i) {
        double& value = state[i * value_dim + j];
        value += k[i] * to_k * beta * (static_cast<double>(v[j]) - recalled);
        sum += value * q[i] * to_q;
      }
      out[h * value_dim + j] = static_cast<float>(sum);
    }
  }

  // Outputs of all rows, and the state after each of them.
  void expected(std::vector<float>& out, std::vector<std::vector<float>>& states) const {
    out.assign(static_cast<size_t>(length * out_width), 0);
    states.assign(static_cast<size_t>(length), {});
    for (int64_t h = 0; h < value_heads; ++h) {
      std::vector<double> state(static_cast<size_t>(key_dim * value_dim));
      for (int64_t r = 0; r < length; ++r) {
        step(r, h, state, out.data() + r * out_width);
        states[r].insert(states[r].end(), state.begin(), state.end());
      }
    }
  }
};

}  // namespace reckon::kernels::testing
