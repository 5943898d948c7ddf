#include "adapters/kernel_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

namespace reckon::adapters {
namespace {

using kernels::KernelResources;

uint32_t occupancy_percent(const KernelResources& resources) {
  return 100 * resources.threads / resources.threads_most;
}

// "96 to 168", or "96" where all say the same.
template <typename Figure>
std::string range_of(const std::vector<KernelResources>& all, Figure figure) {
  const auto [low, high] = std::ranges::minmax(all, {}, figure);
  const uint32_t least = figure(low);
  const uint32_t most = figure(high);
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

std::string words(const std::vector<KernelResources>& all) {
  return fmt::format("{} registers a thread, {} B local, occupancy {}%",
                     range_of(all, [](const KernelResources& each) { return each.registers; }),
                     range_of(all, [](const KernelResources& each) { return each.local_bytes; }),
                     range_of(all, occupancy_percent));
}

}  // namespace

experiment::KernelUse kernel_use(std::span<const kernels::TraceCount> rows,
                                 const std::string& workload_phase) {
  const bool prefill = workload_phase == "prefill";
  std::map<std::string, std::vector<KernelResources>> by_kernel;
  for (const kernels::TraceCount& counted : rows) {
    const kernels::DispatchRow& row = counted.row;
    if (counted.resources.empty() || (row.phase == "prefill") != prefill) continue;
    std::vector<KernelResources>& all =
        by_kernel[fmt::format("{} {} {}", row.phase, row.op, row.variant)];
    all.insert(all.end(), counted.resources.begin(), counted.resources.end());
  }
  experiment::KernelUse use;
  for (const auto& [kernel, all] : by_kernel) use[kernel] = words(all);
  return use;
}

}  // namespace reckon::adapters
