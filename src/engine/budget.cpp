// detect_budget() of memory_plan.h: the only part of the memory plan that looks at the machine.
#include <fstream>
#include <sstream>

#include "base/bytes.h"
#include "engine/container_limit.h"
#include "engine/memory_plan.h"

namespace reckon::engine {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Result<Budget> detect_budget(const std::optional<std::string>& user_limit, uint64_t held_bytes,
                             const kernels::Backend& backend) {
  TRY_ASSIGN(const kernels::Backend::Memory memory, backend.memory_state());
  Budget budget{memory.available_bytes + held_bytes, memory.source};
  const auto take_smaller = [&](uint64_t bytes, std::string source) {
    if (bytes < budget.bytes) budget = {bytes, std::move(source)};
  };
  if (backend.device().backend == "cpu") {
    if (const auto left = container_memory_left("/sys/fs/cgroup", file_text("/proc/self/cgroup"))) {
      take_smaller(*left + held_bytes, "the container's limit");
    }
  }
  if (user_limit) {
    TRY_ASSIGN(const uint64_t limit, parse_limit(*user_limit, memory.total_bytes));
    take_smaller(limit, "the memory limit " + *user_limit);
  }
  return budget;
}

}  // namespace reckon::engine
