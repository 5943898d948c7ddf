#include "engine/oracle_rows.h"

#include <algorithm>
#include <cmath>

namespace reckon::engine {

void keep_largest(double& largest, double value) {
  if (!std::isnan(largest) && !(value <= largest)) largest = value;
}

RowDifference compare_row(std::span<const float> got, std::span<const float> expected) {
  RowDifference row;
  double squares = 0;
  double expected_squares = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double want = static_cast<double>(expected[i]);
    const double difference = std::abs(static_cast<double>(got[i]) - want);
    squares += difference * difference;
    expected_squares += want * want;
    keep_largest(row.scaled, difference / std::max(1.0, std::abs(want)));
    if (std::isnan(row.largest) || difference <= row.largest) continue;
    row.largest = difference;
    row.column = static_cast<int64_t>(i);
  }
  row.ratio = squares == 0 ? 0 : std::sqrt(squares / expected_squares);
  return row;
}

}  // namespace reckon::engine
