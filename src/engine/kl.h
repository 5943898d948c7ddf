// How far one session's predictions are from another's, by raw logits over a text.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "engine/session.h"

namespace reckon::engine {

struct KlReport {
  int64_t tokens = 0;      // positions compared
  double mean_kl = 0;      // KL(reference || variant), nats a token; softmax in float64
  double largest_kl = 0;   // of one position
  int64_t top1_equal = 0;  // positions whose highest logit is the same token's
  int64_t decisive = 0;    // positions whose reference top-2 logit margin is over 0.5
  int64_t decisive_equal = 0;
  int64_t predicted = 0;  // positions of the text whose next token is known
  double reference_loss =
      0;  // mean of -log p(next token) over them, nats; its exp is the perplexity
  double variant_loss = 0;

  // Shares in [0, 1]; 1 where there is nothing to compare.
  [[nodiscard]] double top1_agreement() const;
  [[nodiscard]] double decisive_agreement() const;
};

// Appends `tokens` to both sessions, which were made for LogitRows::kAll on models with the same
// vocabulary (else a usage error), and compares the logits of every position. The variant runs in
// chunks of its own size, the reference in pieces of those.
[[nodiscard]] Result<KlReport> compare_kl(Session& reference, Session& variant,
                                          std::span<const int32_t> tokens);
// The same of tokens that follow, in passes of a generation: each session verifies as many at once
// as its switches may draft, and decodes them one by one where they do not. That is what
// compare_kl() cannot see of kernels that run there alone. What was generated predicts itself, so
// nothing is added to the losses.
[[nodiscard]] Status compare_kl_decode(Session& reference, Session& variant,
                                       std::span<const int32_t> tokens, KlReport& report);

// KL(softmax(reference) || softmax(variant)) of one row, in nats.
[[nodiscard]] double row_kl(std::span<const float> reference, std::span<const float> variant);

}  // namespace reckon::engine
