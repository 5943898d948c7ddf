#include "measure/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/noise.h"
#include "measure/splitmix.h"

namespace reckon::measure {
namespace {

bool has_logarithm(double value) {
  return std::isfinite(value) && value > 0;
}

Order opposite(Order order) {
  return order == Order::kBaseFirst ? Order::kArmFirst : Order::kBaseFirst;
}

}  // namespace

Result<double> log_ratio(double base, double arm, Better better) {
  if (!has_logarithm(base) || !has_logarithm(arm)) {
    return failed(fmt::format(
        "a pair measured base {} and arm {}: expected finite values above zero", base, arm));
  }
  const double difference = std::log(arm) - std::log(base);
  return better == Better::kHigher ? difference : -difference;
}

Result<std::vector<double>> pair_effects(std::span<const Pair> pairs, Better better) {
  std::vector<double> effects;
  effects.reserve(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].warmup) continue;
    const auto effect = log_ratio(pairs[i].base, pairs[i].arm, better);
    if (!effect.ok()) return failed(fmt::format("pair {}: {}", i + 1, effect.error().message));
    effects.push_back(effect.value());
  }
  return effects;
}

Result<EffectsByOrder> effects_by_order(std::span<const Pair> pairs, Better better) {
  TRY_ASSIGN(const std::vector<double> effects, pair_effects(pairs, better));
  EffectsByOrder split;
  size_t next = 0;
  for (const Pair& pair : pairs) {
    if (pair.warmup) continue;
    (pair.order == Order::kBaseFirst ? split.base_first : split.arm_first)
        .push_back(effects[next++]);
  }
  return split;
}

Result<double> median(std::span<const double> values) {
  if (values.empty()) return failed("a median needs at least one value");
  std::vector<double> sorted(values.begin(), values.end());
  if (!std::all_of(sorted.begin(), sorted.end(), [](double v) { return std::isfinite(v); })) {
    return failed("a median was asked of a value that is not finite");
  }
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[middle];
  return std::midpoint(sorted[middle - 1], sorted[middle]);
}

Result<double> round_median(std::span<const Pair> pairs, Better better) {
  TRY_ASSIGN(const EffectsByOrder effects, effects_by_order(pairs, better));
  if (effects.base_first.empty() && effects.arm_first.empty()) {
    return failed("a round has no counted pair (warm-ups do not count)");
  }
  if (effects.base_first.empty()) return median(effects.arm_first);
  if (effects.arm_first.empty()) return median(effects.base_first);
  TRY_ASSIGN(const double base_first, median(effects.base_first));
  TRY_ASSIGN(const double arm_first, median(effects.arm_first));
  return std::midpoint(base_first, arm_first);
}

std::vector<Order> balanced_order(int pairs, uint64_t seed) {
  std::vector<Order> order;
  SplitMix64 random(seed);
  while (static_cast<int64_t>(order.size()) < pairs) {
    const Order first = (random.next() & 1) == 0 ? Order::kBaseFirst : Order::kArmFirst;
    order.push_back(first);
    if (static_cast<int64_t>(order.size()) < pairs) order.push_back(opposite(first));
  }
  return order;
}

Result<SlotTerm> slot_term(std::span<const Pair> pairs, Better better) {
  TRY_ASSIGN(const EffectsByOrder effects, effects_by_order(pairs, better));
  const std::vector<double>& arm_second = effects.base_first;
  const std::vector<double>& arm_first = effects.arm_first;
  if (arm_second.size() < 2 || arm_first.size() < 2) {
    return failed(fmt::format(
        "a slot term needs two counted pairs in each order: {} ran base first and {} arm first",
        arm_second.size(), arm_first.size()));
  }
  TRY_ASSIGN(const double sd_second, standard_deviation(arm_second));
  TRY_ASSIGN(const double sd_first, standard_deviation(arm_first));
  const double variance = sd_second * sd_second / static_cast<double>(arm_second.size()) +
                          sd_first * sd_first / static_cast<double>(arm_first.size());
  return SlotTerm{(mean(arm_second) - mean(arm_first)) / 2, std::sqrt(variance) / 2};
}

}  // namespace reckon::measure
