// What the commands that measure have in common: `queue run`, `ab` and `ledger replay`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "experiment/run.h"

namespace reckon::cli {

void add_budget_option(CLI::App& command, std::string& budget);
void add_force_option(CLI::App& command, std::string& reason);
void add_no_pause_flag(CLI::App& command, bool& no_pause);

// Of this program's own worker, stopped by StopSignals. `budget` as --budget takes it, "" for none;
// a usage error where it is no time. `force_reason` "": the ledger is obeyed.
[[nodiscard]] Result<experiment::RunOptions> measuring_options(const Cli& cli,
                                                               const std::string& budget,
                                                               const std::string& force_reason);

}  // namespace reckon::cli
