#include "adapters/open.h"

#include <fmt/format.h>

#include <array>

#include "adapters/command_runner.h"
#include "adapters/engine_runner.h"

namespace reckon::adapters {
namespace {

constexpr std::array<RunnerKind, 2> kKinds{{
    {"reckon", [] { return std::unique_ptr<experiment::Runner>(new EngineRunner()); }},
    {"command", [] { return std::unique_ptr<experiment::Runner>(new CommandRunner()); }},
}};

}  // namespace

std::span<const RunnerKind> runner_kinds() {
  return kKinds;
}

Result<std::unique_ptr<experiment::Runner>> open_runner(std::string_view name) {
  for (const RunnerKind& kind : kKinds) {
    if (kind.name == name) return kind.create();
  }
  return usage_error(fmt::format("no runner is called '{}': expected reckon or command", name));
}

}  // namespace reckon::adapters
