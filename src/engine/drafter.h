// Drafters: what proposes tokens that the model then verifies, several in one pass (engine/
// speculate.h). With exact verifies, what a drafter says changes how fast tokens come, never which
// ones.
//
// A drafter serves one generation and is used from its thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace reckon::engine {

struct Draft {
  int32_t token = 0;
  // How sure the drafter is, where it can say.
  std::optional<double> probability;
  std::optional<double> margin;  // of its highest logit over the second
};

// Ends a proposal before the first draft that is less sure. What a drafter cannot say holds nothing
// back.
struct ConfidenceGate {
  double least_probability = 0;
  double least_margin = 0;

  [[nodiscard]] bool passes(const Draft& draft) const {
    return draft.probability.value_or(1) >= least_probability &&
           (!draft.margin || *draft.margin >= least_margin);
  }
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  [[nodiscard]] virtual std::string name() const = 0;  // as decode.drafter spells it

  // The text goes on with `tokens`, never empty: first the prompt with what stood before it, then
  // the token picked after it, then what each pass gave: the drafts that were accepted, in order,
  // and one token more. The last one is pending: the session has run all tokens but it.
  [[nodiscard]] virtual Status commit(std::span<const int32_t> tokens) = 0;

  // Up to `depth` tokens (1 or more) that may follow, the likeliest first guess at each place, up
  // to the first that does not pass the gate. None where there is nothing to propose. Tokens are
  // inside the model's vocabulary.
  [[nodiscard]] virtual Result<std::vector<Draft>> propose(int64_t depth,
                                                           const ConfidenceGate& gate) = 0;
};

}  // namespace reckon::engine
