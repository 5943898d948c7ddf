// How many rounds, and how many pairs a round, does a claim take? Pure and thread-safe.
//
// A round's median moves for two reasons: its pairs are noisy, which more pairs average out, and
// its process is shifted as a whole, which they do not. Both are estimated from the A/A rounds' own
// pairs: v(n), the variance of the median of n pairs, by drawing pairs again from the A/A rounds
// (balanced over the orders, from a fixed seed); what is left of s_m^2 belongs to the rounds. So
//   s_m(n)^2 = round^2 + v(n).
// It is a forecast: 20 A/A rounds know s_m to about 16%, and the part of the rounds worse. A/A
// rounds of another number of pairs do not carry over (noise.h), so a change of it costs 20 fresh
// ones; their s_m, not the forecast, then decides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "measure/noise.h"
#include "measure/pairs.h"

namespace reckon::measure {

struct NoiseParts {
  int pairs = 0;         // counted ones of each of the A/A rounds
  double pair = 0;       // standard deviation of one pair within its round and order, log units
  double slot_term = 0;  // log units, as SlotTerm
  double of_pairs = 0;   // standard deviation of a round's median that its pairs explain
  double of_rounds = 0;  // what they do not: its floor, however many pairs a round has
};

// Learns the parts once and then forecasts any number of pairs.
class NoiseForecast {
 public:
  // Errors: fewer than kMinimumNoiseRounds rounds, rounds of different numbers of counted pairs,
  // fewer than four pairs a round (two in each order), a value without a logarithm.
  [[nodiscard]] static Result<NoiseForecast> create(std::span<const std::vector<Pair>> floor,
                                                    Better better);

  [[nodiscard]] const NoiseParts& parts() const { return parts_; }
  // Of rounds of `pairs` pairs (at least 2, even), as if learnt from as many A/A rounds as these.
  [[nodiscard]] Noise noise(int pairs) const;

 private:
  [[nodiscard]] double drawn_variance(int pairs) const;

  NoiseParts parts_;
  int rounds_ = 0;
  double scale_ = 1;               // of drawn variances: below 1 where they exceed s_m^2
  std::vector<double> residuals_;  // of pairs within round and order, widened for lost degrees
};

struct Design {
  int rounds = 0;
  int pairs = 0;
  double smallest = 0;     // detectable effect, log units
  int fresh_floor = 0;     // A/A rounds to measure first
  int64_t cost_pairs = 0;  // of all of it, warm-ups included
};

struct DesignRequest {
  double claim = 0;      // a share, > 0
  int rounds = 2;        // at least so many
  int pairs = 6;         // as the A/A rounds have
  int warmup_pairs = 1;  // of every round
};

inline constexpr int kMostPairs = 96;  // a round that auto_pairs considers

// The cheapest design, in pairs, that sees the claim: the pairs of the A/A rounds or up to
// kMostPairs in even steps of a half more, each with the fewest rounds. Errors: kUsage for a
// request out of range; kRefused where none does, saying what the best one sees and which part is
// to blame.
[[nodiscard]] Result<Design> auto_pairs(const NoiseForecast& forecast,
                                        const DesignRequest& request);

}  // namespace reckon::measure
