#include "formats/router_skew.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/hash.h"

namespace reckon {
namespace {

constexpr int kHalvings = 100;

// The x between 0 and `most` where a rising function reaches `wanted`.
template <typename Function>
double solve(double most, double wanted, const Function& function) {
  double low = 0;
  double high = most;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (function(middle) < wanted ? low : high) = middle;
  }
  return (low + high) / 2;
}

// What a standard normal value exceeds with probability `share`, under a half.
double threshold_of(double share) {
  constexpr double kFar = 30;  // deviations
  return solve(kFar, -share, [](double x) { return -std::erfc(x / std::numbers::sqrt2) / 2; });
}

std::vector<double> shares_of(int64_t experts, double largest, double most, double skew) {
  std::vector<double> shares;
  for (int64_t i = 1; i <= experts; ++i) {
    shares.push_back(std::min(most, largest * std::pow(static_cast<double>(i), -skew)));
  }
  return shares;
}

double sum_of(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

// The experts by rank.
std::vector<size_t> ranking(int64_t experts, std::string_view draw) {
  std::vector<std::pair<uint64_t, size_t>> keys;
  for (size_t e = 0; e < static_cast<size_t>(experts); ++e) {
    keys.emplace_back(hash64(fmt::format("{} {}", draw, e)), e);
  }
  std::ranges::sort(keys);
  std::vector<size_t> ranked;
  for (const auto& [key, expert] : keys) ranked.push_back(expert);
  return ranked;
}

}  // namespace

std::vector<double> expert_shares(int64_t experts, int64_t selected, double skew) {
  const double even = static_cast<double>(selected) / static_cast<double>(experts);
  const double most = (even + 0.5) / 2;
  const double largest_possible = most * std::pow(static_cast<double>(experts), skew);
  const double largest = solve(largest_possible, static_cast<double>(selected), [&](double first) {
    return sum_of(shares_of(experts, first, most, skew));
  });
  return shares_of(experts, largest, most, skew);
}

Result<std::vector<float>> router_factors(int64_t experts, int64_t selected, double skew,
                                          std::string_view draw) {
  if (selected < 1 || 2 * selected >= experts) {
    return failed(fmt::format("router_skew: {} of {} experts are selected; expected less than half",
                              selected, experts));
  }
  const std::vector<double> shares = expert_shares(experts, selected, skew);
  const double even = threshold_of(static_cast<double>(selected) / static_cast<double>(experts));
  std::vector<float> factors(static_cast<size_t>(experts));
  const std::vector<size_t> ranked = ranking(experts, draw);
  for (size_t rank = 0; rank < ranked.size(); ++rank) {
    factors[ranked[rank]] = static_cast<float>(even / threshold_of(shares[rank]));
  }
  return factors;
}

}  // namespace reckon
