// What a reader of a session's results should know of its plan. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/memory_plan.h"

namespace reckon::engine {

// One line for each file of tile rules that gives calls outside the conditions that it was tuned at
// another tile than their kernel's own: how many of its shapes those are, and the first of them
// with what is outside.
[[nodiscard]] std::vector<std::string> tile_rule_notes(std::span<const PlannedCall> calls);

// The content hashes of the tile rules that were asked, by "tile_rules.NAME".
[[nodiscard]] std::map<std::string, std::string> tile_rule_hashes(
    std::span<const PlannedCall> calls);

}  // namespace reckon::engine
