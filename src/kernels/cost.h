// What a call must move and compute at least, whatever kernel runs it: the numerators of every
// share of a bound (bounds.h). Pure functions of the call.
#pragma once

#include <cstdint>

#include "kernels/op.h"

namespace reckon::kernels {

struct Cost {
  // Weights, states and cached keys and values, each once: what is too large to stay in a cache
  // between two passes. Activations are not counted: they stay. Nor is what a kernel reads twice.
  uint64_t bytes = 0;
  // Multiplications and additions (two for a product that is added) of matrix products and of
  // attention's scores and values: what matrix instructions do. Everything else is none.
  uint64_t operations = 0;

  Cost& operator+=(const Cost& other) {
    bytes += other.bytes;
    operations += other.operations;
    return *this;
  }
  friend bool operator==(const Cost&, const Cost&) = default;
};

[[nodiscard]] constexpr Cost operator*(const Cost& cost, uint64_t times) {
  return {cost.bytes * times, cost.operations * times};
}

// By op; `first_position` is the position of the call's first row, which only attention looks at:
//   embedding               a row of the table for each token
//   rms_norm, add_rms_norm  the weight
//   matmul and its groups   every weight; 2 * rows * n * k operations a weight
//   attention               keys and values of all positions up to its last row (its own rows are
//                           written rather than read, and counted once as well); a row at position
//                           p sees p + 1 positions, 4 * n * k operations each. The norms of heads
//                           that rope_attention may include are not counted: a call does not say.
//   gated_rms_norm          the weight
//   causal_conv             the weight and the width - 1 inputs before its first row
//   gated_delta_rule        a state, read and written once; two products with it and an outer
//                           product a row: 6 * n * k * m operations
//   expert_matmul_*         the weights of the experts that rows would touch if their selections
//                           were drawn evenly, rounded to a whole expert (of a single row it is
//                           those that it does touch); 2 * rows * m * n * k operations a weight
//   what is left            nothing
[[nodiscard]] Cost call_cost(const OpCall& call, int64_t first_position);

}  // namespace reckon::kernels
