// Rank tests over single pairs. Printed beside a verdict and never gating it: they take pairs for
// independent, and pairs of one round share that round's shift (docs/measuring.md has their
// measured error rate). Pure and thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"

namespace reckon::measure {

// Up to so many differences other than zero the distribution is exact.
inline constexpr size_t kMostExactWilcoxon = 200;

struct RankTest {
  double statistic = 0;  // Wilcoxon: sum of the ranks above zero; sign test: values above zero
  int64_t used = 0;      // values other than zero
  int64_t zeros = 0;     // left out
  bool exact = true;
  double p_value = 1;  // two-sided: min(1, 2 × the smaller tail); 1 where nothing is used
};

// Wilcoxon's signed-rank test that the differences (log units) are symmetric around zero. Zeros are
// left out before ranking (Wilcoxon 1945), ties get the mean of their ranks, and the distribution
// is exact given the ties: over all 2^n signs of these very ranks. Above kMostExactWilcoxon values
// it is normal, with the variance of these ranks and a correction for continuity. Error: a value
// that is not finite.
[[nodiscard]] Result<RankTest> wilcoxon_signed_rank(std::span<const double> differences);

// The exact sign test (binomial, 1/2) that above and below zero are equally likely; zeros are left
// out. Error: a value that is not finite.
[[nodiscard]] Result<RankTest> sign_test(std::span<const double> differences);

}  // namespace reckon::measure
