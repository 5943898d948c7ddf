// The normal distribution. Pure and thread-safe.
#pragma once

#include <cmath>

namespace reckon::measure {

// P(Z > z).
[[nodiscard]] inline double normal_upper_tail(double z) {
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

// z with P(Z <= z) = p, 0 < p < 1. Newton steps from Abramowitz and Stegun 26.2.23; relative error
// below 1e-9 for p from 1e-6 to 1 - 1e-6.
[[nodiscard]] double normal_quantile(double p);

}  // namespace reckon::measure
