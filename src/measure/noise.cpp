#include "measure/noise.h"

#include <cmath>

namespace reckon::measure {

Result<double> standard_deviation(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      return failed("a standard deviation was asked of a value that is not finite");
    }
    sum += value;
  }
  if (values.size() < 2) return 0.0;
  const double mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Result<Noise> estimate_noise(std::span<const double> round_medians) {
  TRY_ASSIGN(const double deviation, standard_deviation(round_medians));
  return Noise{static_cast<int>(round_medians.size()), deviation};
}

}  // namespace reckon::measure
