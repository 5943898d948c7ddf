// How two rows of numbers differ, as comparisons with recorded results see it. Pure.
#pragma once

#include <cstdint>
#include <span>

namespace reckon::engine {

// Keeps the larger; not-a-number counts as larger than everything.
void keep_largest(double& largest, double value);

struct RowDifference {
  double largest = 0;  // absolute
  double scaled = 0;   // largest over max(1, |expected|)
  double ratio = 0;    // of the norms
  int64_t column = 0;  // of the largest; the first that is not a number, where there is one
};

// Of two rows of one length.
[[nodiscard]] RowDifference compare_row(std::span<const float> got,
                                        std::span<const float> expected);

}  // namespace reckon::engine
