// The table of Runners and opening one by name.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "experiment/runner.h"

namespace reckon::adapters {

struct RunnerKind {
  std::string_view name;
  std::unique_ptr<experiment::Runner> (*create)();
};

[[nodiscard]] std::span<const RunnerKind> runner_kinds();

// Usage error where no runner has the name.
[[nodiscard]] Result<std::unique_ptr<experiment::Runner>> open_runner(std::string_view name);

}  // namespace reckon::adapters
