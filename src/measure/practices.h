// How two programs are often compared, for the study of error rates beside the verdict rule
// (study.h): nothing of the product calls by them. Pure and thread-safe.
#pragma once

#include <span>

#include "base/result.h"

namespace reckon::measure {

// Welch's two-sided t-test that both samples have one mean. Errors: fewer than two values in
// either; a value that is not finite. 1 where neither sample varies and the means are equal, 0
// where they differ.
[[nodiscard]] Result<double> welch_p_value(std::span<const double> a, std::span<const double> b);

}  // namespace reckon::measure
