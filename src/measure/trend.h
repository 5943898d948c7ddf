// Did the base arm drift while a round ran? Pure and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace reckon::measure {

// Up to so many values a round, and without ties, the distribution is exact.
inline constexpr size_t kMostExactTrend = 60;

struct TrendTest {
  int64_t score = 0;  // Kendall's S: later values that are higher less those that are lower
  bool exact = true;
  double p_value = 1;    // two-sided; 1 where no round has two values
  double slope_log = 0;  // log units a step: median of all slopes within rounds (Theil, Sen)
};

// The Mann-Kendall test over the values of each round in the order in which they were measured (in
// the metric's unit, > 0), summed over rounds: what moves within a round counts, a level that
// differs from one process to the next does not (Hirsch, Slack, Smith: Techniques of trend
// analysis, 1982). Exact over all orders of every round; where values are tied or a round is longer
// than kMostExactTrend, normal with the variance for ties and a correction for continuity (Kendall:
// Rank correlation methods, 1970). A note, never a gate: values that wander (autocorrelation) look
// like drift to it. Error: a value without a logarithm.
[[nodiscard]] Result<TrendTest> trend_within_rounds(std::span<const std::vector<double>> rounds);

}  // namespace reckon::measure
