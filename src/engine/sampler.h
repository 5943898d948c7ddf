// From logits to the next token, and the random numbers of one generation.
//
// Greedy takes the highest logit, ties to the lowest index: row-independent and exact. Sampling at
// a temperature draws from softmax(logits / temperature), computed in float64 in index order on a
// CPU (kernels/kernel.h). The random bits are std::mt19937_64 of the seed (fully specified by the
// C++ standard), one draw a token, its upper 53 bits times 2^-53 as the uniform number in [0, 1);
// so that a seed gives the same tokens on every machine whose exp() rounds alike.
#pragma once

#include <cstdint>
#include <random>
#include <span>

#include "base/result.h"
#include "kernels/ops.h"

namespace reckon::engine {

// Of logits on the host. Fails where a logit is not finite, naming its index; `logits` is not
// empty.
[[nodiscard]] Result<kernels::Pick> pick_token(std::span<const float> logits,
                                               const kernels::Sampling& sampling = {});
// The pick as it is, or the error that its token stands for.
[[nodiscard]] Result<kernels::Pick> checked(const kernels::Pick& pick);

struct SamplerOptions {
  double temperature = 0;  // 0: greedy
  uint64_t seed = 0;       // used where the temperature is above 0
};

// Holds the random state of one generation; not thread-safe.
class Sampler {
 public:
  // A usage error where the temperature is negative or not finite.
  [[nodiscard]] static Result<Sampler> create(const SamplerOptions& options);

  // How to pick the next token.
  [[nodiscard]] kernels::Sampling next();

 private:
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}

  SamplerOptions options_;
  std::mt19937_64 random_;
};

}  // namespace reckon::engine
