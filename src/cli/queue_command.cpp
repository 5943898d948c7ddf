// `reckon queue`: price a queue of experiments, or run it.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapters/open.h"
#include "cli/command.h"
#include "cli/ledger_access.h"
#include "cli/measuring_options.h"
#include "cli/output.h"
#include "cli/queue_progress.h"
#include "cli/signals.h"
#include "experiment/extent.h"
#include "experiment/markdown.h"
#include "experiment/run.h"

namespace reckon::cli {
namespace {

struct QueueOptions {
  std::string file;
  experiment::QueueOverrides instead;
  std::string markdown;
  MeasuringOptions measuring;
  bool auto_pairs = false;
  bool quick = false;
  bool full = false;
  bool gate = false;
  bool json = false;
};

void add_file(CLI::App& command, QueueOptions& options) {
  command.add_option("file", options.file, "the queue, as YAML")->required()->type_name("FILE");
  command
      .add_option("-m,--model", options.instead.model,
                  "instead of the queue's default, not of an experiment's own")
      ->type_name("MODEL");
  command.add_option("--quant", options.instead.quant, "likewise, how matrices are packed at load")
      ->type_name("SCHEME");
}

void add_auto_pairs(CLI::App& command, QueueOptions& options) {
  command.add_flag("--auto-pairs", options.auto_pairs,
                   "take the rounds and pairs that the claim needs, do not refuse");
}

void add_extent(CLI::App& command, QueueOptions& options) {
  auto* quick =
      command.add_flag("--quick", options.quick,
                       "one round of 3 pairs each: minutes, and what they cannot conclude");
  command.add_flag("--full", options.full, "experiments that say `only: full`, too")
      ->excludes(quick);
}

Result<experiment::Queue> load(const QueueOptions& options) {
  TRY_ASSIGN(experiment::Queue queue, experiment::load_queue(options.file, options.instead));
  const experiment::Extent extent = options.quick  ? experiment::Extent::kQuick
                                    : options.full ? experiment::Extent::kFull
                                                   : experiment::Extent::kUsual;
  queue = experiment::with_extent(std::move(queue), extent);
  if (queue.experiments.empty()) {
    return usage_error(fmt::format("{}: no experiment is left {}", options.file,
                                   options.quick ? "with --quick" : "without --full"));
  }
  return queue;
}

Result<ExitCode> check(const Cli& cli, const QueueOptions& options) {
  TRY_ASSIGN(const experiment::Queue queue, load(options));
  TRY_ASSIGN(const auto runner, adapters::open_runner(queue.runner));
  TRY_ASSIGN(const auto store, open_ledger(cli));
  const experiment::QueueCheck checked = experiment::check_queue(
      queue, *runner, *store,
      options.auto_pairs ? experiment::TooShort::kLengthen : experiment::TooShort::kRefuse);
  if (options.json) {
    print_json(to_json(checked));
  } else {
    fmt::print("{}", text_table(checked));
  }
  return static_cast<ExitCode>(checked.exit_code());
}

Result<ExitCode> run(const Cli& cli, const QueueOptions& options) {
  TRY_ASSIGN(Measuring how, measuring(cli, options.measuring));
  how.run.auto_pairs = options.auto_pairs;
  TRY_ASSIGN(const experiment::Queue queue, load(options));
  TRY_ASSIGN(const auto runner, adapters::open_runner(queue.runner));
  TRY_ASSIGN(const auto store, open_ledger(cli));
  if (!options.markdown.empty()) TRY(check_writable(options.markdown));
  const StopSignals signals;
  QueueProgress progress;
  TRY_ASSIGN(const experiment::QueueOutcome outcome,
             experiment::run_queue(queue, *runner, *store, how.run, progress));
  const int code = options.gate ? outcome.gate_exit_code() : outcome.exit_code();
  if (options.json) {
    nlohmann::json json = to_json(outcome);
    json["exit_code"] = code;
    print_json(json);
  } else {
    fmt::print("{}", text_table(outcome));
  }
  if (!options.markdown.empty()) TRY(write_text(options.markdown, markdown_page(outcome)));
  const int signal = StopSignals::received();
  return static_cast<ExitCode>(signal != 0 ? kExitSignal + signal : code);
}

void add_check(Cli& cli, CLI::App& group) {
  CLI::App* command =
      group.add_subcommand("check", "what the ledger and the plan say; runs and writes nothing");
  auto options = std::make_shared<QueueOptions>();
  add_file(*command, *options);
  add_auto_pairs(*command, *options);
  add_extent(*command, *options);
  command->add_flag("--json", options->json, "print JSON");
  command->footer("Example:\n  reckon queue check queues/first.yaml");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return check(cli, *options); }; });
}

void add_run(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand("run", "run it, or go on where it stopped");
  auto options = std::make_shared<QueueOptions>();
  add_file(*command, *options);
  command->add_option("--markdown", options->markdown, "write a page with all the evidence")
      ->type_name("FILE");
  add_budget_option(*command, options->measuring);
  add_force_option(*command, options->measuring);
  add_auto_pairs(*command, *options);
  add_extent(*command, *options);
  command->add_flag("--gate", options->gate,
                    "exit code 4: one is LOST, BROKE or OUT-OF-MEMORY; 3: undecided");
  add_no_pause_flag(*command, options->measuring);
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Ctrl-C stops at the end of the pair; the same command goes on from there.\n"
      "Examples:\n"
      "  reckon queue run queues/first.yaml --markdown page.md\n"
      "  reckon --ledger results queue run queues/first.yaml --budget 9m\n"
      "  reckon queue run queues/first.yaml -m smollm2\n"
      "  reckon queue run queues/first.yaml --gate    # in CI");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return run(cli, *options); }; });
}

}  // namespace

void add_queue_command(Cli& cli) {
  CLI::App* group = cli.app.add_subcommand("queue", "check or run a queue of experiments");
  group->require_subcommand(1);
  add_check(cli, *group);
  add_run(cli, *group);
  group->footer(
      "Examples:\n"
      "  reckon queue check queues/first.yaml\n"
      "  reckon queue run queues/first.yaml");
}

}  // namespace reckon::cli
