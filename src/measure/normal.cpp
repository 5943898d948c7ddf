#include "measure/normal.h"

#include "base/check.h"

namespace reckon::measure {

double normal_quantile(double p) {
  RECKON_CHECK(p > 0 && p < 1);
  if (p == 0.5) return 0;
  if (p < 0.5) return -normal_quantile(1 - p);
  // A first guess from the tail (Abramowitz and Stegun 26.2.23, error below 4.5e-4), then Newton's
  // steps, each of which squares the error.
  const double tail = 1 - p;
  const double t = std::sqrt(-2 * std::log(tail));
  double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                     (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  for (int i = 0; i < 4; ++i) {
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1.0));
    z += (normal_upper_tail(z) - tail) / density;
  }
  return z;
}

}  // namespace reckon::measure
