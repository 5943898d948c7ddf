// Replay: proposes the true next token, known from a recorded run of the same generation, with a
// given probability, and a wrong one otherwise. For measuring what verifies cost at a known
// acceptance, with random weights as well. Nothing that it makes faster would be faster in use:
// whatever shows its results says so (is_replay()).
#pragma once

#include <string_view>

#include "engine/drafter.h"

namespace reckon::engine {

// What a plain run of the generation gave.
struct Recording {
  std::vector<int32_t> tokens;
  std::vector<float> margins;  // top-2 logit margin at each of them
};

class ReplayDrafter final : public Drafter {
 public:
  // `probability` in [0, 1]; `vocabulary` of the model. Which tokens are wrong, and how, follows
  // from the seed alone. A draft's confidence is `probability` and the recorded margin.
  ReplayDrafter(double probability, Recording recording, int64_t vocabulary, uint64_t seed);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] Status commit(std::span<const int32_t> tokens) override;
  [[nodiscard]] Result<std::vector<Draft>> propose(int64_t depth,
                                                   const ConfidenceGate& gate) override;

 private:
  double probability_;
  std::vector<Draft> drafts_;  // one for each recorded token
  bool begun_ = false;         // the prompt was committed
  size_t next_ = 0;            // of drafts_
};

// Whether a drafter of this name replays.
[[nodiscard]] bool is_replay(std::string_view drafter);

}  // namespace reckon::engine
