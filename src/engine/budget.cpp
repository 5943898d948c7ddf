// detect_budget() of memory_plan.h: the only part of the memory plan that looks at the machine.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/bytes.h"
#include "engine/container_limit.h"
#include "engine/memory_plan.h"

namespace reckon::engine {
namespace {

// A line "Name:   123 kB" of /proc/meminfo, in bytes.
Result<uint64_t> meminfo_bytes(const std::string& wanted) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  std::string unit;
  while (file >> name >> kibibytes) {
    std::getline(file, unit);
    if (name == wanted + ":") return kibibytes * 1024;
  }
  return failed(fmt::format("/proc/meminfo: no line '{}'", wanted));
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Result<Budget> detect_budget(const std::optional<std::string>& user_limit, uint64_t held_bytes) {
  TRY_ASSIGN(const uint64_t available, meminfo_bytes("MemAvailable"));
  Budget budget{available + held_bytes, "available memory"};
  const auto take_smaller = [&](uint64_t bytes, std::string source) {
    if (bytes < budget.bytes) budget = {bytes, std::move(source)};
  };
  if (const auto left = container_memory_left("/sys/fs/cgroup", file_text("/proc/self/cgroup"))) {
    take_smaller(*left + held_bytes, "the container's limit");
  }
  if (user_limit) {
    TRY_ASSIGN(const uint64_t physical, meminfo_bytes("MemTotal"));
    TRY_ASSIGN(const uint64_t limit, parse_limit(*user_limit, physical));
    take_smaller(limit, "the memory limit " + *user_limit);
  }
  return budget;
}

}  // namespace reckon::engine
