// From round medians to WON, LOST, NEUTRAL or INCONCLUSIVE. Pure and thread-safe.
//
// With R rounds and noise s_m from K A/A rounds, all in log units:
//   SE = s_m / sqrt(R); from R >= 4 not below the rounds' own scatter / sqrt(R)
//   WON / LOST    |mean| / SE > t(K-1, 0.9975), and every round has the same sign
//   NEUTRAL       mean +- t(K-1, 0.95) SE lies inside +-ln(1 + claim), and the arms provably
//                 dispatched different code
//   otherwise, and always while K < 20, INCONCLUSIVE.
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

// Half-widths in log units.
struct Band {
  double standard_error = 0;
  double noise_band = 0;           // t(K-1, 0.9975) SE
  double interval90 = 0;           // t(K-1, 0.95) SE
  double smallest_detectable = 0;  // (t(K-1, 0.9975) + 0.86) SE: seen at 80% power
};

struct Decision {
  Call call = Call::kInconclusive;
  double mean_log = 0;
  double effect = 0;  // exp(mean_log) - 1
  bool same_sign = false;
  int missing_noise_rounds = 0;
  std::optional<Band> band;  // unset below two A/A rounds
};

// Errors: no round, a median that is not finite, a claim that is not above zero.
// A noise of exactly zero is taken at its word (byte counts do not vary).
[[nodiscard]] Result<Decision> decide(const Evidence& evidence);

// The band of a design of `rounds` rounds before it is run. Errors: fewer than two A/A rounds,
// rounds < 1.
[[nodiscard]] Result<Band> design_band(const Noise& noise, int rounds);

// Rounds that bring the smallest detectable effect down to `claim`; at least 1. Errors: as above,
// a claim that is not above zero, or more than a million rounds.
[[nodiscard]] Result<int> rounds_to_see(const Noise& noise, double claim);

}  // namespace reckon::measure
