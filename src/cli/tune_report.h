// What `reckon tune` shows and records of a sweep.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/table.h"
#include "cli/tune_sweep.h"
#include "kernels/bounds.h"
#include "kernels/tile_rules.h"

namespace reckon::cli {

struct TuneResult {
  Sweep sweep;
  std::vector<kernels::Bound> bounds;
  std::vector<kernels::TileRule> rules;
};

// "square" for the kernel's own.
[[nodiscard]] std::string tile_name(const Sweep& sweep, kernels::TileShape tile);

// Milliseconds a call by every tile, the best one's gain over the kernel's own, its share of the
// multiply bound and its scratch; the best in bold where `bold` says so.
[[nodiscard]] Table tune_table(const TuneResult& result, bool bold);

// A line a cell, for where there is no room for the table: "512x2048 q4_0 rows=128: square 1.404,
// tall 1.402, wide 1.219 ms; wide +15.2%".
[[nodiscard]] std::vector<std::string> cell_lines(const TuneResult& result);

// A line a rule, in order.
[[nodiscard]] std::vector<std::string> rule_lines(const TuneResult& result);
// The largest loss of the rules' choices against the best tiles, a share.
[[nodiscard]] double largest_loss(const TuneResult& result);

// Every cell with every pair.
[[nodiscard]] nlohmann::json cells_json(const TuneResult& result);

}  // namespace reckon::cli
