// A slow-down of a known size, to see whether the lab finds it: every decode step does busy work of
// a share of a step's own time, which is measured first. Only for tests of the lab
// (bench/known_slowdown); the switch is in no list and is unknown unless RECKON_TEST_SWITCHES=1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "experiment/runner.h"

namespace reckon::adapters {

inline constexpr std::string_view kBusySwitch = "test.busy_percent";  // 0 (none) to 100

[[nodiscard]] bool busy_work_allowed();
[[nodiscard]] Result<int64_t> parse_busy_percent(const std::string& text);
// What the plan lists and the trace shows of it: reach {op: busy_work, phase: decode}.
[[nodiscard]] experiment::DispatchRow busy_row(int64_t percent);
// Keeps the calling thread busy for so long.
void do_busy_work(int64_t ns);

}  // namespace reckon::adapters
