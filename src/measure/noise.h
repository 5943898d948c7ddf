// How much a round's median moves when nothing differs, learnt from A/A rounds of one workload
// class. Pure and thread-safe.
#pragma once

#include <span>

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

}  // namespace reckon::measure
