// How much a round's median moves when nothing differs, learnt from A/A rounds of one workload
// class. Pure and thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace reckon::measure {

// A/A rounds that a WON, LOST or NEUTRAL needs.
inline constexpr int kMinimumNoiseRounds = 20;

// Fewer say too little about noise for a band to be worth showing.
inline constexpr int kShownNoiseRounds = 5;

struct Noise {
  int rounds = 0;                 // K
  double standard_deviation = 0;  // s_m, log units; meaningless below two rounds

  [[nodiscard]] int missing_rounds() const {
    return rounds < kMinimumNoiseRounds ? kMinimumNoiseRounds - rounds : 0;
  }
};

// Arithmetic mean of at least one value.
[[nodiscard]] double mean(std::span<const double> values);

// Sample standard deviation (n - 1); 0 below two values. Errors: a value that is not finite.
[[nodiscard]] Result<double> standard_deviation(std::span<const double> values);

// From the medians (log units) of K A/A rounds; K may be 0.
[[nodiscard]] Result<Noise> estimate_noise(std::span<const double> round_medians);

// Noise ages: drivers, kernels and neighbours change. Only the newest rounds count, and none that
// is older than this.
inline constexpr int kNewestNoiseRounds = 60;
inline constexpr double kMostNoiseDays = 90;

struct NoiseRound {
  double median_log = 0;  // log units
  int pairs = 0;          // counted ones
  double age_days = 0;    // when it is asked, told by the caller: nothing here reads a clock
};

struct NoiseRule {
  int pairs = 0;  // a round of another number of pairs moves by another amount, and never counts
  int newest = kNewestNoiseRounds;
  double most_days = kMostNoiseDays;
};

struct ChosenNoise {
  Noise noise;
  std::vector<size_t> used;  // indices, newest first; of equal age, later ones first
  int other_pairs = 0;       // left out: another number of pairs
  int too_old = 0;           // left out: older than most_days
  int superseded = 0;        // left out: enough newer ones
};

// The noise of the newest rounds of `rule.pairs` pairs that are not too old. Errors: a median or an
// age that is not finite.
[[nodiscard]] Result<ChosenNoise> choose_noise(std::span<const NoiseRound> rounds,
                                               const NoiseRule& rule);

}  // namespace reckon::measure
