#include "cli/measuring_options.h"

#include "cli/signals.h"
#include "experiment/queue.h"
#include "ledger/writer.h"

namespace reckon::cli {

void add_budget_option(CLI::App& command, std::string& budget) {
  command.add_option("--budget", budget, "stop at a pair's end after 90s, 9m or 1.5h")
      ->type_name("TIME");
}

void add_force_option(CLI::App& command, std::string& reason) {
  command
      .add_option("--force", reason,
                  "measure although the ledger already knows; the reason is recorded")
      ->type_name("REASON")
      ->check([](const std::string& text) {
        return text.find_first_not_of(' ') == std::string::npos ? "a reason is needed" : "";
      });
}

void add_no_pause_flag(CLI::App& command, bool& no_pause) {
  command.add_flag("--no-pause", no_pause,
                   "measure also while other processes keep the machine busy");
}

Result<experiment::RunOptions> measuring_options(const Cli& cli, const std::string& budget,
                                                 const std::string& force_reason) {
  experiment::RunOptions run;
  run.worker_command = {cli.self, "round-worker"};
  run.command = cli.typed;
  run.writer = ledger::default_writer();
  run.force_reason = force_reason;
  run.stop_requested = [] { return StopSignals::received() != 0; };
  if (!budget.empty()) {
    TRY_ASSIGN(run.budget_seconds, experiment::parse_seconds(budget));
  }
  return run;
}

}  // namespace reckon::cli
