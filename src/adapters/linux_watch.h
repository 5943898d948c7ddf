// The machine as Linux describes it: /proc/stat of the processors that this process may use, the
// CPU time of the experiment's own processes, thermal throttling and clocks from sysfs. What the
// system does not give is left out. What other processes do on a GPU is not seen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "experiment/machine_watch.h"

namespace reckon::adapters {

// Clock ticks since the start of the machine, summed over processors.
struct CpuTicks {
  int64_t total = 0, busy = 0, stolen = 0;
};

// Of /proc/stat; `processors`: numbers of those that count. Unset where it has none of them.
[[nodiscard]] std::optional<CpuTicks> parse_cpu_ticks(std::string_view stat,
                                                      const std::set<int>& processors);

// Of /proc/PID/stat: ticks of the process and of its children that ended. Unset: not such a line.
[[nodiscard]] std::optional<int64_t> parse_process_ticks(std::string_view stat);

// Windows of at least a quarter of a second.
[[nodiscard]] std::unique_ptr<experiment::MachineWatch> open_machine_watch();

}  // namespace reckon::adapters
