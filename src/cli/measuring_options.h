// What the commands that measure have in common: `queue run`, `ab` and `ledger replay`.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/result.h"
#include "cli/command.h"
#include "experiment/machine_watch.h"
#include "experiment/run.h"

namespace reckon::cli {

struct MeasuringOptions {
  std::string budget;        // as --budget takes it; "": none
  std::string force_reason;  // "": the ledger is obeyed
  bool no_pause = false;     // measure in dirty windows, too
};

void add_budget_option(CLI::App& command, MeasuringOptions& options);
void add_force_option(CLI::App& command, MeasuringOptions& options);
void add_no_pause_flag(CLI::App& command, MeasuringOptions& options);

// How run_queue() shall measure, and what must live while it does.
struct Measuring {
  experiment::RunOptions run;
  std::unique_ptr<experiment::MachineWatch> watch;  // null: nobody looks
};

// By this program's own worker, beside a watch of the machine, stopped by StopSignals. Usage error:
// a budget that is no time.
[[nodiscard]] Result<Measuring> measuring(const Cli& cli, const MeasuringOptions& options);

}  // namespace reckon::cli
