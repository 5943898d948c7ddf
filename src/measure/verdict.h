// From round medians to WON, LOST, NEUTRAL or INCONCLUSIVE. Pure and thread-safe.
//
// With R rounds and noise s_m from K A/A rounds, all in log units:
//   SE = s_m / sqrt(R); from R >= 4 not below the rounds' own scatter / sqrt(R)
//   WON / LOST    |mean| / SE > t(K-1, 0.9975), and every round has the same sign; with two or
//   three
//                 rounds each of them beyond s_m / (R-1)
//   NEUTRAL       mean +- t(K-1, 0.95) SE lies inside +-ln(1 + claim), and the arms provably
//                 dispatched different code
//   otherwise, and always while K < 20, INCONCLUSIVE.
// The clause for two and three rounds, whose scatter does not count yet, is there for shifts with
// heavy tails: without it one stray round and a second of the same sign are called in up to 1.6% of
// A/A comparisons, with it in under 1% (docs/measuring.md has the study).
// VOID, BROKE and OUT-OF-MEMORY are not statistics: the caller decides them first.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/result.h"
#include "measure/noise.h"

namespace reckon::measure {

// From so many rounds on their own scatter may widen the band.
inline constexpr size_t kRoundsWithScatter = 4;

enum class Call { kWon, kLost, kNeutral, kInconclusive };

struct Evidence {
  std::span<const double> round_medians;  // log units, > 0 the better arm; at least one
  Noise noise;
  std::optional<double> claim;      // a share (0.02 is +2%), > 0; unset: NEUTRAL is out of reach
  bool different_dispatch = false;  // proven by the arms' fingerprints
};

// Half-widths in log units. The smallest detectable effect is (t(K-1, 0.9975) + 0.86) s_m / sqrt(R)
// for one and two rounds. More rounds must also agree in sign, and their scatter counts: it is then
// 1.04 times that (R = 3), 1.15 times (4) or 1.17 times (more), and not below 1.12 z s_m, where
// P(Z <= z)^R = 0.8. Factors from simulated normal rounds; more than about six rounds lower it no
// further.
struct Band {
  double standard_error = 0;
  double noise_band = 0;           // t(K-1, 0.9975) SE
  double interval90 = 0;           // t(K-1, 0.95) SE
  double smallest_detectable = 0;  // seen at 80% power, from s_m alone
};

struct Decision {
  Call call = Call::kInconclusive;
  double mean_log = 0;
  double effect = 0;  // exp(mean_log) - 1
  bool same_sign = false;
  bool rounds_agree = false;      // same_sign, and the clause for two and three rounds
  std::optional<double> p_value;  // two-sided, of the mean against t(K-1); unset without a band
  int missing_noise_rounds = 0;
  std::optional<Band> band;  // unset below two A/A rounds
};

// Errors: no round, a median that is not finite, a claim that is not above zero.
// A noise of exactly zero is taken at its word (byte counts do not vary).
[[nodiscard]] Result<Decision> decide(const Evidence& evidence);

// The band of a design of `rounds` rounds before it is run. Errors: fewer than two A/A rounds,
// rounds < 1.
[[nodiscard]] Result<Band> design_band(const Noise& noise, int rounds);

// The fewest rounds that bring the smallest detectable effect down to `claim`. Errors: as above, a
// claim that is not above zero; refused: no number of rounds does.
[[nodiscard]] Result<int> rounds_to_see(const Noise& noise, double claim);

}  // namespace reckon::measure
