// From logits to the next token, and the random numbers of one generation.
//
// The order, each step on what the one before left:
//   1. repeat_penalty on the logits of the last repeat_window tokens (logit_filter.h)
//   2. temperature 0: the highest logit, ties to the lowest index, and nothing more
//   3. top_k, top_p, min_p (logit_filter.h), on shares at temperature 1
//   4. a draw from softmax(logits / temperature) of the tokens that are left, in index order
//
// Greedy is row-independent and exact. A draw is computed in float64 on a CPU (kernels/kernel.h).
// The random bits are std::mt19937_64 of the seed (fully specified by the C++ standard), one draw a
// token, its upper 53 bits times 2^-53 as the uniform number in [0, 1); so that a seed gives the
// same tokens on every machine whose exp() rounds alike.
//
// Steps 2 and 4 alone run where the logits are. Steps 1 and 3 run on the host on every backend:
// from a device they cost a copy of the row a token, and no pass can run ahead of them.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/logit_filter.h"
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
  uint64_t seed = 0;       // used, as are the filters, where the temperature is above 0
  FilterOptions filters = {};
  double repeat_penalty = 1;   // 0.01 to 100; 1: none
  int64_t repeat_window = 64;  // tokens back, of the prompt too; 0: none
};

// Holds the random state of one generation, or of several that follow each other, and the tokens
// that a penalty looks at; not thread-safe.
class Sampler {
 public:
  // A usage error where an option is outside its range, naming it.
  [[nodiscard]] static Result<Sampler> create(const SamplerOptions& options);

  // Whether no random number is drawn.
  [[nodiscard]] bool greedy() const { return options_.temperature == 0; }
  // Whether pick() must see the logits; else next() says how they are picked where they are.
  [[nodiscard]] bool needs_logits() const;
  // How to pick the next token.
  [[nodiscard]] kernels::Sampling next();
  // Picks the next token of logits on the host; the margin is that of the penalised logits. Errors
  // as pick_token().
  [[nodiscard]] Result<kernels::Pick> pick(std::span<const float> logits);

  // What a penalty looks at: tokens that were appended to the sequence, and a sequence that starts
  // over.
  void saw(std::span<const int32_t> tokens);
  void forget() { recent_.clear(); }

 private:
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}
  [[nodiscard]] bool penalises() const {
    return options_.repeat_penalty != 1 && options_.repeat_window > 0;
  }

  SamplerOptions options_;
  std::mt19937_64 random_;
  std::vector<int32_t> recent_;  // the last repeat_window tokens at most
  std::vector<float> row_;       // the logits as penalised
};

}  // namespace reckon::engine
