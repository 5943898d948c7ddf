#include "measure/trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "measure/normal.h"
#include "measure/pairs.h"

namespace reckon::measure {
namespace {

int64_t sign(double value) {
  return (value > 0) - (value < 0);
}

int64_t score_of(const std::vector<double>& values) {
  int64_t score = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) score += sign(values[j] - values[i]);
  }
  return score;
}

void add_slopes(const std::vector<double>& values, std::vector<double>& slopes) {
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) {
      slopes.push_back((std::log(values[j]) - std::log(values[i])) / static_cast<double>(j - i));
    }
  }
}

// Multiplies a distribution of discordant pairs by that of one more value in an order of `length`:
// it adds 0 … length - 1 of them, all equally likely.
std::vector<double> with_value(const std::vector<double>& share, size_t length) {
  std::vector<double> next(share.size() + length - 1, 0.0);
  for (size_t i = 0; i < share.size(); ++i) {
    for (size_t add = 0; add < length; ++add) {
      next[i + add] += share[i] / static_cast<double>(length);
    }
  }
  return next;
}

double exact_p(std::span<const std::vector<double>> rounds, int64_t score) {
  std::vector<double> share{1.0};  // by discordant pairs over all rounds
  int64_t all = 0;
  for (const std::vector<double>& round : rounds) {
    for (size_t length = 2; length <= round.size(); ++length) share = with_value(share, length);
    all += static_cast<int64_t>(round.size() * (round.size() - 1) / 2);
  }
  const auto fewest = static_cast<size_t>((all - std::abs(score)) / 2);
  double tail = 0;
  for (size_t i = 0; i <= fewest; ++i) tail += share[i];
  return std::min(1.0, 2 * tail);
}

// Of S in one round: (n(n-1)(2n+5) - sum over ties of t(t-1)(2t+5)) / 18.
double variance_of(std::vector<double> values) {
  const auto term = [](double n) { return n * (n - 1) * (2 * n + 5) / 18; };
  std::sort(values.begin(), values.end());
  double variance = term(static_cast<double>(values.size()));
  for (size_t first = 0; first < values.size();) {
    size_t end = first;
    while (end < values.size() && values[end] == values[first]) ++end;
    variance -= term(static_cast<double>(end - first));
    first = end;
  }
  return variance;
}

double approximate_p(std::span<const std::vector<double>> rounds, int64_t score) {
  double variance = 0;
  for (const std::vector<double>& round : rounds) variance += variance_of(round);
  if (variance <= 0) return 1;
  const double distance = std::max(0.0, std::fabs(static_cast<double>(score)) - 1);
  return std::min(1.0, 2 * normal_upper_tail(distance / std::sqrt(variance)));
}

bool has_ties(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

}  // namespace

Result<TrendTest> trend_within_rounds(std::span<const std::vector<double>> rounds) {
  TrendTest test;
  std::vector<double> slopes;
  for (const std::vector<double>& round : rounds) {
    for (const double value : round) {
      if (!std::isfinite(value) || value <= 0) {
        return failed(fmt::format("a trend was asked of {}: expected values above zero", value));
      }
    }
    test.score += score_of(round);
    test.exact = test.exact && round.size() <= kMostExactTrend && !has_ties(round);
    add_slopes(round, slopes);
  }
  if (slopes.empty()) return test;
  TRY_ASSIGN(test.slope_log, median(slopes));
  test.p_value = test.exact ? exact_p(rounds, test.score) : approximate_p(rounds, test.score);
  return test;
}

}  // namespace reckon::measure
