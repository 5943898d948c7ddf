#include "measure/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "measure/splitmix.h"
#include "measure/verdict.h"

namespace reckon::measure {
namespace {

constexpr int kDraws = 4000;  // the variance of a median to about 2%
constexpr uint64_t kDrawSeed = 20;
constexpr int kBestRounds = 6;  // more do not lower the smallest effect (verdict.h)

// Appends the deviations of one order's pairs from their mean, widened to their true variance.
void add_residuals(const std::vector<double>& effects, std::vector<double>& residuals) {
  if (effects.size() < 2) return;
  const auto count = static_cast<double>(effects.size());
  const double center = mean(effects);
  const double widen = std::sqrt(count / (count - 1));
  for (const double effect : effects) residuals.push_back(widen * (effect - center));
}

double root_mean_square(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// The median of values that may be put in another order.
double take_median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

}  // namespace

Result<NoiseForecast> NoiseForecast::create(std::span<const std::vector<Pair>> floor,
                                            Better better) {
  NoiseForecast forecast;
  forecast.rounds_ = static_cast<int>(floor.size());
  if (forecast.rounds_ < kMinimumNoiseRounds) {
    return failed(fmt::format("a forecast of noise takes {} A/A rounds, and there are {}",
                              kMinimumNoiseRounds, floor.size()));
  }
  std::vector<double> medians;
  std::vector<double> slots;
  for (const std::vector<Pair>& round : floor) {
    TRY_ASSIGN(const EffectsByOrder effects, effects_by_order(round, better));
    const size_t pairs = effects.base_first.size() + effects.arm_first.size();
    if (forecast.parts_.pairs == 0) forecast.parts_.pairs = static_cast<int>(pairs);
    if (pairs != static_cast<size_t>(forecast.parts_.pairs)) {
      return failed("a forecast of noise takes A/A rounds of one number of pairs");
    }
    if (effects.base_first.size() < 2 || effects.arm_first.size() < 2) {
      return failed("a forecast of noise takes two pairs in either order of every A/A round");
    }
    TRY_ASSIGN(const double median, round_median(round, better));
    medians.push_back(median);
    slots.push_back((mean(effects.base_first) - mean(effects.arm_first)) / 2);
    add_residuals(effects.base_first, forecast.residuals_);
    add_residuals(effects.arm_first, forecast.residuals_);
  }
  TRY_ASSIGN(const Noise noise, estimate_noise(medians));
  NoiseParts& parts = forecast.parts_;
  parts.pair = root_mean_square(forecast.residuals_);
  parts.slot_term = mean(slots);
  const double all = noise.standard_deviation * noise.standard_deviation;
  const double drawn = forecast.drawn_variance(parts.pairs);
  if (drawn > all) forecast.scale_ = all / drawn;
  parts.of_pairs = std::sqrt(std::min(drawn, all));
  parts.of_rounds = std::sqrt(std::max(0.0, all - drawn));
  return forecast;
}

double NoiseForecast::drawn_variance(int pairs) const {
  SplitMix64 random(kDrawSeed);
  std::vector<double> order(static_cast<size_t>(pairs / 2));
  const auto draw_median = [&] {
    for (double& value : order) value = residuals_[random.below(residuals_.size())];
    return take_median(order);
  };
  double squares = 0;
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double result = std::midpoint(draw_median(), draw_median());
    squares += result * result;
    sum += result;
  }
  return std::max(0.0, squares / kDraws - sum / kDraws * (sum / kDraws));
}

Noise NoiseForecast::noise(int pairs) const {
  RECKON_CHECK(pairs >= 2);
  return Noise{rounds_,
               std::sqrt(parts_.of_rounds * parts_.of_rounds + scale_ * drawn_variance(pairs))};
}

namespace {

Status check_request(const NoiseForecast& forecast, const DesignRequest& request) {
  if (!std::isfinite(request.claim) || request.claim <= 0) {
    return usage_error(fmt::format("claim {}: expected a gain above zero", request.claim));
  }
  if (request.rounds < 1 || request.warmup_pairs < 0 || request.pairs != forecast.parts().pairs) {
    return usage_error(fmt::format("{} and {} are no design for A/A rounds of {} pairs",
                                   counted(request.rounds, "round"), counted(request.pairs, "pair"),
                                   forecast.parts().pairs));
  }
  return {};
}

// With rounds of `pairs` pairs; rounds 0: none sees the claim, and `smallest` is the best one's.
Result<Design> design_of(const NoiseForecast& forecast, const DesignRequest& request, int pairs) {
  Design design;
  design.pairs = pairs;
  design.fresh_floor = pairs == request.pairs ? 0 : kMinimumNoiseRounds;
  const Noise noise = forecast.noise(pairs);
  const Result<int> rounds = rounds_to_see(noise, request.claim);
  if (!rounds.ok() && rounds.error().kind != ErrorKind::kRefused) return rounds.error();
  design.rounds = rounds.ok() ? std::max(request.rounds, *rounds) : 0;
  TRY_ASSIGN(const Band band, design_band(noise, rounds.ok() ? design.rounds : kBestRounds));
  design.smallest = band.smallest_detectable;
  if (design.smallest > std::log1p(request.claim)) design.rounds = 0;
  design.cost_pairs =
      static_cast<int64_t>(design.rounds + design.fresh_floor) * (pairs + request.warmup_pairs);
  return design;
}

}  // namespace

Result<Design> auto_pairs(const NoiseForecast& forecast, const DesignRequest& request) {
  TRY(check_request(forecast, request));
  std::optional<Design> cheapest;
  double best_seen = 0;
  for (int pairs = request.pairs; pairs <= std::max(kMostPairs, request.pairs);
       pairs += std::max(2, pairs / 4 * 2)) {
    TRY_ASSIGN(const Design design, design_of(forecast, request, pairs));
    best_seen = best_seen == 0 ? design.smallest : std::min(best_seen, design.smallest);
    if (design.rounds == 0) continue;
    if (!cheapest || design.cost_pairs < cheapest->cost_pairs) cheapest = design;
  }
  if (cheapest) return *cheapest;
  const NoiseParts& parts = forecast.parts();
  return refused(fmt::format(
      "no design sees a gain of {:.3g}% here: up to {} pairs a round see {:.2g}% and more; {:.0f}% "
      "of the noise of a round is the round's own, which more pairs do not lower",
      request.claim * 100, kMostPairs, std::expm1(best_seen) * 100,
      100 * parts.of_rounds * parts.of_rounds /
          std::max(1e-300, parts.of_rounds * parts.of_rounds + parts.of_pairs * parts.of_pairs)));
}

}  // namespace reckon::measure
