// Stopping after any round with both error rates stated: a generalised sequential probability ratio
// test over rounds. Pure and thread-safe.
//
// Three hypotheses about the true effect (log units): 0, +c and -c, where c = ln(1 + claim). After
// n rounds with medians x, and K A/A rounds whose squares sum to S = (K-1) s_m^2, the likelihood of
// an effect m with the noise integrated out (its posterior after the A/A rounds under the prior
// 1/s) is
//   L(m) ~ (S + sum (x - m)^2) ^ (-(K-1+n)/2),
// which is also the ratio of maximised likelihoods: Student's t instead of the normal of Wald's
// test with a known variance (Wald: Sequential analysis, 1947; Rushton: On a sequential t-test,
// 1950). So a noise that is only known from 20 rounds is not taken for certain. With W =
// ln((1-b)/(a/2)) and B = ln(b/(1-a/2)):
//   kBetter      ln L(+c)/L(0) reaches W first          kWorse   the same of -c
//   kNoGain      both ratios have fallen to B           kGoOn    otherwise
// Error rates that are asked for: a, of kBetter or kWorse for identical arms; b, of kNoGain for an
// effect of the claim. Wald's bounds hold for a known noise; what they come to with 20 A/A rounds
// is in docs/measuring.md.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "measure/noise.h"

namespace reckon::measure {

// kBetter and kWorse take two rounds at least: one stray round of a noise with heavy tails would
// otherwise decide alone where the claim is large.
inline constexpr size_t kFewestSequentialRounds = 2;

struct SequentialDesign {
  double claim = 0;            // a share, > 0
  double false_call = 0.005;   // a: both sides together, as t(K-1, 0.9975) is for a fixed design
  double missed_claim = 0.05;  // b
};

enum class SequentialCall { kGoOn, kBetter, kWorse, kNoGain };

struct SequentialState {
  SequentialCall call = SequentialCall::kGoOn;
  size_t rounds = 0;        // that decided it, or all of them
  double log_ratio_up = 0;  // ln L(+c)/L(0) after those
  double log_ratio_down = 0;
};

// The state after these rounds, in the order measured; rounds behind the first decision are not
// looked at. Errors: fewer than kMinimumNoiseRounds A/A rounds, a noise of zero, a median that is
// not finite, a claim or a rate that is out of range (0 < rate < 0.5).
[[nodiscard]] Result<SequentialState> sequential_state(const Noise& noise,
                                                       std::span<const double> round_medians,
                                                       const SequentialDesign& design);

}  // namespace reckon::measure
