#include "measure/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure/noise.h"

namespace reckon::measure {
namespace {

bool has_logarithm(double value) {
  return std::isfinite(value) && value > 0;
}

// SplitMix64 (Steele, Lea, Flood 2014): small, seedable, the same on every machine.
uint64_t next_random(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
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
  TRY_ASSIGN(const std::vector<double> effects, pair_effects(pairs, better));
  if (effects.empty()) return failed("a round has no counted pair (warm-ups do not count)");
  return median(effects);
}

std::vector<Order> balanced_order(int pairs, uint64_t seed) {
  std::vector<Order> order;
  uint64_t state = seed;
  while (static_cast<int64_t>(order.size()) < pairs) {
    const Order first = (next_random(state) & 1) == 0 ? Order::kBaseFirst : Order::kArmFirst;
    order.push_back(first);
    if (static_cast<int64_t>(order.size()) < pairs) order.push_back(opposite(first));
  }
  return order;
}

Result<SlotTerm> slot_term(std::span<const Pair> pairs, Better better) {
  std::vector<double> arm_second;
  std::vector<double> arm_first;
  TRY_ASSIGN(const std::vector<double> effects, pair_effects(pairs, better));
  size_t next = 0;
  for (const Pair& pair : pairs) {
    if (pair.warmup) continue;
    (pair.order == Order::kBaseFirst ? arm_second : arm_first).push_back(effects[next++]);
  }
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
