#include "cli/measuring_options.h"

#include "adapters/linux_watch.h"
#include "cli/signals.h"
#include "experiment/queue.h"
#include "ledger/writer.h"

namespace reckon::cli {

void add_budget_option(CLI::App& command, MeasuringOptions& options) {
  command.add_option("--budget", options.budget, "stop at a pair's end after 90s, 9m or 1.5h")
      ->type_name("TIME");
}

void add_force_option(CLI::App& command, MeasuringOptions& options) {
  command
      .add_option("--force", options.force_reason,
                  "measure although the ledger already knows; the reason is recorded")
      ->type_name("REASON")
      ->check([](const std::string& text) {
        return text.find_first_not_of(' ') == std::string::npos ? "a reason is needed" : "";
      });
}

void add_no_pause_flag(CLI::App& command, MeasuringOptions& options) {
  command.add_flag("--no-pause", options.no_pause,
                   "measure also while other processes keep the machine busy");
}

Result<Measuring> measuring(const Cli& cli, const MeasuringOptions& options) {
  Measuring measuring;
  experiment::RunOptions& run = measuring.run;
  run.worker_command = {cli.self, "round-worker"};
  run.command = cli.typed;
  run.writer = ledger::default_writer();
  run.force_reason = options.force_reason;
  run.stop_requested = [] { return StopSignals::received() != 0; };
  if (!options.budget.empty()) {
    const Result<double> seconds = experiment::parse_seconds(options.budget);
    if (!seconds.ok()) return usage_error("--budget: " + seconds.error().message);
    run.budget_seconds = *seconds;
  }
  if (!options.no_pause) measuring.watch = adapters::open_machine_watch();
  run.watch = measuring.watch.get();
  return measuring;
}

}  // namespace reckon::cli
