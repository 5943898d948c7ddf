#include "measure/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "measure/normal.h"
#include "measure/student_t.h"

namespace reckon::measure {
namespace {

constexpr double kCallLevel = 0.9975;    // two-sided 99.5 %
constexpr double kIntervalLevel = 0.95;  // two-sided 90 %
constexpr double kPowerQuantile = 0.86;  // of 80 % power (design 05-experiments)
constexpr int kMostUsefulRounds = 10;    // the smallest detectable effect grows from 7 on

// What the rounds' scatter and their signs cost, as a factor (verdict.h).
double rounds_factor(size_t rounds) {
  if (rounds <= 2) return 1;
  if (rounds == 3) return 1.04;
  return rounds == 4 ? 1.15 : 1.17;
}

// In noises of a round.
double smallest_detectable(double call_t, size_t rounds) {
  const auto count = static_cast<double>(rounds);
  const double by_mean = rounds_factor(rounds) * (call_t + kPowerQuantile) / std::sqrt(count);
  if (rounds < kRoundsWithScatter) return by_mean;
  return std::max(by_mean, 1.12 * normal_quantile(std::pow(0.8, 1 / count)));
}

Band band_of(double standard_error, const Noise& noise, size_t rounds) {
  const double degrees = noise.rounds - 1;
  const double call_t = student_t_quantile(kCallLevel, degrees);
  return Band{standard_error, call_t * standard_error,
              student_t_quantile(kIntervalLevel, degrees) * standard_error,
              smallest_detectable(call_t, rounds) * noise.standard_deviation};
}

bool all_same_sign(std::span<const double> values) {
  const auto all = [&](auto predicate) {
    return std::all_of(values.begin(), values.end(), predicate);
  };
  return all([](double v) { return v > 0; }) || all([](double v) { return v < 0; });
}

// Two rounds, or three, have no scatter to speak of: each of them must carry its part.
bool rounds_carry(std::span<const double> medians, const Noise& noise) {
  if (medians.size() < 2 || medians.size() >= kRoundsWithScatter) return true;
  const double part = noise.standard_deviation / static_cast<double>(medians.size() - 1);
  return std::all_of(medians.begin(), medians.end(),
                     [&](double median) { return std::fabs(median) > part; });
}

double p_value_of(double mean_log, double standard_error, const Noise& noise) {
  const double distance = std::fabs(mean_log);
  if (standard_error == 0) return distance > 0 ? 0 : 1;
  return 2 * student_t_cdf(-distance / standard_error, noise.rounds - 1);
}

Status check_claim(double claim) {
  if (std::isfinite(claim) && claim > 0) return {};
  return usage_error(fmt::format("claim {}: expected a gain above zero, such as +2%", claim));
}

Status check_noise(const Noise& noise) {
  if (noise.rounds >= 0 && std::isfinite(noise.standard_deviation) &&
      noise.standard_deviation >= 0) {
    return {};
  }
  return failed(fmt::format("noise of {} over {} is not a standard deviation",
                            noise.standard_deviation, counted(noise.rounds, "round")));
}

Call call_of(const Evidence& evidence, const Decision& decision) {
  if (decision.missing_noise_rounds > 0) return Call::kInconclusive;
  const Band& band = *decision.band;
  const double distance = std::fabs(decision.mean_log);
  // distance / SE > t, written so that a noise of zero needs no division.
  if (distance > band.noise_band && decision.rounds_agree) {
    return decision.mean_log > 0 ? Call::kWon : Call::kLost;
  }
  if (evidence.claim && evidence.different_dispatch &&
      distance + band.interval90 < std::log1p(*evidence.claim)) {
    return Call::kNeutral;
  }
  return Call::kInconclusive;
}

}  // namespace

Result<Decision> decide(const Evidence& evidence) {
  const std::span<const double> medians = evidence.round_medians;
  if (medians.empty()) return failed("a verdict needs at least one round");
  for (size_t i = 0; i < medians.size(); ++i) {
    if (!std::isfinite(medians[i])) {
      return failed(fmt::format("round {}: its median {} is not finite", i + 1, medians[i]));
    }
  }
  if (evidence.claim) TRY(check_claim(*evidence.claim));
  TRY(check_noise(evidence.noise));

  const double rounds = static_cast<double>(medians.size());
  Decision decision;
  decision.mean_log = mean(medians);
  decision.effect = std::expm1(decision.mean_log);
  decision.same_sign = all_same_sign(medians);
  decision.rounds_agree = decision.same_sign && rounds_carry(medians, evidence.noise);
  decision.missing_noise_rounds = evidence.noise.missing_rounds();
  if (evidence.noise.rounds >= 2) {
    double deviation = evidence.noise.standard_deviation;
    if (medians.size() >= kRoundsWithScatter) {
      const Result<double> scatter = standard_deviation(medians);
      if (!scatter.ok()) return scatter.error();
      deviation = std::max(deviation, scatter.value());
    }
    decision.band = band_of(deviation / std::sqrt(rounds), evidence.noise, medians.size());
    decision.p_value = p_value_of(decision.mean_log, decision.band->standard_error, evidence.noise);
  }
  decision.call = call_of(evidence, decision);
  return decision;
}

Result<Band> design_band(const Noise& noise, int rounds) {
  TRY(check_noise(noise));
  if (noise.rounds < 2) {
    return failed(fmt::format("noise takes at least 2 A/A rounds, and there are {}", noise.rounds));
  }
  if (rounds < 1) return usage_error(fmt::format("rounds {}: expected at least 1", rounds));
  return band_of(noise.standard_deviation / std::sqrt(static_cast<double>(rounds)), noise,
                 static_cast<size_t>(rounds));
}

Result<int> rounds_to_see(const Noise& noise, double claim) {
  TRY(check_claim(claim));
  double least = 0;
  for (int rounds = 1; rounds <= kMostUsefulRounds; ++rounds) {
    TRY_ASSIGN(const Band band, design_band(noise, rounds));
    if (band.smallest_detectable <= std::log1p(claim)) return rounds;
    least = rounds == 1 ? band.smallest_detectable : std::min(least, band.smallest_detectable);
  }
  return refused(
      fmt::format("no number of rounds of this size sees a gain of {:.3g}% on this "
                  "device: they see {:.2g}% and more",
                  claim * 100, std::expm1(least) * 100));
}

}  // namespace reckon::measure
