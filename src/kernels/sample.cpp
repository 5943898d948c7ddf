#include "kernels/sample.h"

#include <cmath>

namespace reckon::kernels {
namespace {

Pick highest_of(const float* logits, int64_t n) {
  int64_t best = 0;
  float highest = -INFINITY;
  float second = -INFINITY;
  for (int64_t i = 0; i < n; ++i) {
    const float logit = logits[i];
    if (!std::isfinite(logit)) return {static_cast<int32_t>(-1 - i), 0};
    if (logit > highest) {
      second = highest;
      highest = logit;
      best = i;
    } else if (logit > second) {
      second = logit;
    }
  }
  return {static_cast<int32_t>(best), n == 1 ? 0 : highest - second};
}

int32_t draw(const float* logits, int64_t n, float highest, double temperature, double uniform) {
  const auto share = [&](float logit) {
    return std::exp((static_cast<double>(logit) - static_cast<double>(highest)) / temperature);
  };
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += share(logits[i]);
  const double wanted = uniform * total;
  double sum = 0;
  int64_t last_possible = 0;  // where rounding leaves `wanted` beyond the last sum
  for (int64_t i = 0; i < n; ++i) {
    const double weight = share(logits[i]);
    if (weight > 0) last_possible = i;
    sum += weight;
    if (wanted < sum) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(last_possible);
}

}  // namespace

Pick sample_row(const float* logits, int64_t n, double temperature, double uniform) {
  Pick pick = highest_of(logits, n);
  if (temperature > 0 && pick.token >= 0) {
    pick.token = draw(logits, n, logits[pick.token], temperature, uniform);
  }
  return pick;
}

}  // namespace reckon::kernels
