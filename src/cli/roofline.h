// The machine's bounds on the command line: measured, as a table and as JSON, and what share of
// them a speed reaches.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/table.h"
#include "kernels/backend.h"
#include "kernels/cost.h"

namespace reckon::cli {

// "4.61 TB/s", "826.7 Gop/s": a value of Bound::unit with the prefix that suits it.
[[nodiscard]] std::string format_rate(double value, const std::string& unit);

[[nodiscard]] Table bounds_table(std::span<const kernels::Bound> bounds);
// An array, an object a bound.
[[nodiscard]] nlohmann::json bounds_json(std::span<const kernels::Bound> bounds);

// How much of the bounds a speed reaches.
struct Shares {
  double bytes_per_token = 0;
  double operations_per_token = 0;
  double read = 0;             // of the highest read bandwidth
  double multiply = 0;         // of the highest rate of multiply-adds
  std::string multiply_bound;  // whose name is this
};
// Of `tokens` that cost `cost` together, at `tokens_per_s`. `bounds` has one of each kind.
[[nodiscard]] Shares shares_of(const kernels::Cost& cost, int64_t tokens, double tokens_per_s,
                               std::span<const kernels::Bound> bounds);

}  // namespace reckon::cli
