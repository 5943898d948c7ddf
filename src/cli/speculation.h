// What run and bench say of speculative decoding (engine/speculation_stats.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/speculation_stats.h"
#include "kernels/switches.h"

namespace reckon::cli {

// As --json reports it: drafter, passes, tokens_per_pass, ... What is not known is null.
[[nodiscard]] nlohmann::json speculation_json(const engine::SpeculationStats& stats);
// The same in one line, without its end.
[[nodiscard]] std::string speculation_line(const engine::SpeculationStats& stats);

// That the drafter replays a recorded run; "" where it does not.
[[nodiscard]] std::string speculation_note(const kernels::SwitchSet& switches);

}  // namespace reckon::cli
