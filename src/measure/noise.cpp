#include "measure/noise.h"

#include <algorithm>
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

Result<ChosenNoise> choose_noise(std::span<const NoiseRound> rounds, const NoiseRule& rule) {
  ChosenNoise chosen;
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (!std::isfinite(rounds[i].age_days)) return failed("an A/A round's age is not finite");
    if (rounds[i].pairs != rule.pairs) {
      ++chosen.other_pairs;
    } else if (rounds[i].age_days > rule.most_days) {
      ++chosen.too_old;
    } else {
      chosen.used.push_back(i);
    }
  }
  std::sort(chosen.used.begin(), chosen.used.end(), [&](size_t a, size_t b) {
    return rounds[a].age_days != rounds[b].age_days ? rounds[a].age_days < rounds[b].age_days
                                                    : a > b;
  });
  const auto newest = static_cast<size_t>(std::max(0, rule.newest));
  if (chosen.used.size() > newest) {
    chosen.superseded = static_cast<int>(chosen.used.size() - newest);
    chosen.used.resize(newest);
  }
  std::vector<double> medians;
  for (const size_t i : chosen.used) medians.push_back(rounds[i].median_log);
  TRY_ASSIGN(chosen.noise, estimate_noise(medians));
  return chosen;
}

}  // namespace reckon::measure
