// What a session's kernels took of a device, in words. Pure and thread-safe.
#pragma once

#include <span>
#include <string>

#include "experiment/runner.h"
#include "kernels/trace.h"

namespace reckon::adapters {

// Of the rows that have launches with known resources: those of the prefill for the workload phase
// "prefill", else all others. A variant that made several kinds of launches gets a range a figure:
// "96 to 168 registers a thread, 0 B local, occupancy 25 to 38%".
[[nodiscard]] experiment::KernelUse kernel_use(std::span<const kernels::TraceCount> rows,
                                               const std::string& workload_phase);

}  // namespace reckon::adapters
