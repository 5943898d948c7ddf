// Several comparisons at once. Pure and thread-safe.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"

namespace reckon::measure {

// Holm's step-down adjusted p-values (S. Holm, A simple sequentially rejective multiple test
// procedure, 1979), in the order given: those at most a are the ones that may be called at a with
// the chance of any wrong call among all of them at most a, however they depend on each other.
// Error: a value outside 0…1.
[[nodiscard]] Result<std::vector<double>> holm(std::span<const double> p_values);

}  // namespace reckon::measure
