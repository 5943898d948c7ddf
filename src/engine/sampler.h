// From logits to the next token.
//
// Greedy takes the highest logit, ties to the lowest index: row-independent and exact. Sampling at
// a temperature draws from softmax(logits / temperature), computed in float64 in index order. The
// random bits are std::mt19937_64 of the seed (fully specified by the C++ standard), one draw a
// token, its upper 53 bits times 2^-53 as the uniform number in [0, 1); so that a seed gives the
// same tokens on every machine whose exp() rounds alike.
#pragma once

#include <cstdint>
#include <random>
#include <span>

#include "base/result.h"

namespace reckon::engine {

struct GreedyPick {
  int32_t token = 0;
  float margin = 0;  // highest logit minus the second highest; 0 where there is only one
};

// Fails where a logit is not a number (or infinite), naming its index; `logits` is not empty.
[[nodiscard]] Result<GreedyPick> pick_greedy(std::span<const float> logits);

struct SamplerOptions {
  double temperature = 0;  // 0: greedy
  uint64_t seed = 0;       // used where the temperature is above 0
};

// Holds the random state of one generation; not thread-safe.
class Sampler {
 public:
  // A usage error where the temperature is negative or not finite.
  [[nodiscard]] static Result<Sampler> create(const SamplerOptions& options);

  // The next token; the margin is of the raw logits, whatever was drawn.
  [[nodiscard]] Result<GreedyPick> pick(std::span<const float> logits);

 private:
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}
  [[nodiscard]] int32_t draw(std::span<const float> logits, float highest);

  SamplerOptions options_;
  std::mt19937_64 random_;
};

}  // namespace reckon::engine
