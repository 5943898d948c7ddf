#include "measure/noise.h"

#include <cmath>
#include <numeric>

#include "base/check.h"

namespace reckon::measure {

double mean(std::span<const double> values) {
  RECKON_CHECK(!values.empty());
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Result<double> standard_deviation(std::span<const double> values) {
  for (const double value : values) {
    if (!std::isfinite(value)) {
      return failed("a standard deviation was asked of a value that is not finite");
    }
  }
  if (values.size() < 2) return 0.0;
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Result<Noise> estimate_noise(std::span<const double> round_medians) {
  TRY_ASSIGN(const double deviation, standard_deviation(round_medians));
  return Noise{static_cast<int>(round_medians.size()), deviation};
}

}  // namespace reckon::measure
