// `reckon ledger replay`: runs the queue of an entry again and sets the new verdict beside the old.
#include "cli/ledger_replay.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "adapters/open.h"
#include "cli/ledger_access.h"
#include "cli/ledger_json.h"
#include "cli/measuring_options.h"
#include "cli/output.h"
#include "cli/queue_progress.h"
#include "cli/signals.h"
#include "experiment/run.h"
#include "experiment/verdict_text.h"
#include "ledger/summary.h"

namespace reckon::cli {
namespace {

using experiment::Outcome;
using ledger::Entry;

struct ReplayOptions {
  std::string id;
  MeasuringOptions measuring;
  bool json = false;
};

// The queue that the entry keeps.
Result<experiment::Queue> queue_of(const Entry& entry) {
  const std::string& text = entry.idea.reproduce.queue_text;
  if (text.empty()) return failed(entry.id + " does not say how to reproduce it");
  TRY_ASSIGN(experiment::Queue queue, experiment::parse_queue(text, entry.id));
  if (queue.experiments.front().is_floor()) {
    return usage_error(entry.id + " holds A/A rounds, which have no verdict to replay");
  }
  // Beside the queue that first had the experiment, on the same ledger.
  queue.name = "replay of " + entry.id;
  return queue;
}

std::string old_text(const Entry& entry) {
  return entry.verdict ? experiment::verdict_sentence(entry) : "no verdict";
}

// Unset where either has no verdict.
std::optional<bool> agrees(const Entry& entry, const Outcome& outcome) {
  if (!entry.verdict || !outcome.verdict()) return std::nullopt;
  return entry.verdict->verdict == *outcome.verdict();
}

std::vector<ledger::ScopeDifference> scope_differences(const Entry& entry, const Outcome& outcome) {
  if (!outcome.record) return {};
  return ledger::differences(entry.idea.scope, outcome.record->idea.scope);
}

void print_text(const Entry& entry, const Outcome& outcome) {
  fmt::print("then  {}  {}\n", entry.id, old_text(entry));
  fmt::print("now   {}  {}\n", outcome.entry.empty() ? "not recorded" : outcome.entry,
             outcome.text);
  if (const auto same = agrees(entry, outcome)) {
    fmt::print("{}\n", *same ? "the verdicts agree" : "the verdicts differ");
  }
  for (const ledger::ScopeDifference& one : scope_differences(entry, outcome)) {
    fmt::print("scope: {} was {}, is {}\n", one.field, one.a, one.b);
  }
}

nlohmann::json to_json(const Entry& entry, const Outcome& outcome, int code) {
  nlohmann::json differences = nlohmann::json::array();
  for (const ledger::ScopeDifference& one : scope_differences(entry, outcome)) {
    differences.push_back({{"field", one.field}, {"then", one.a}, {"now", one.b}});
  }
  nlohmann::json object{{"then", entry_summary_json(ledger::summary_of(entry))},
                        {"now", experiment::to_json(outcome)},
                        {"agrees", nullptr},
                        {"scope_differences", std::move(differences)},
                        {"exit_code", code}};
  if (const auto same = agrees(entry, outcome)) object["agrees"] = *same;
  return object;
}

Result<ExitCode> replay(const Cli& cli, const ReplayOptions& options) {
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const auto catalog, read_catalog(*store));
  TRY_ASSIGN(const Entry entry, catalog->entry(options.id));
  TRY_ASSIGN(const experiment::Queue queue, queue_of(entry));
  MeasuringOptions asked = options.measuring;
  asked.force_reason = "replay of " + entry.id;
  TRY_ASSIGN(const Measuring how, measuring(cli, asked));
  TRY_ASSIGN(const auto runner, adapters::open_runner(queue.runner));
  const StopSignals signals;
  QueueProgress progress;
  TRY_ASSIGN(const experiment::QueueOutcome result,
             experiment::run_queue(queue, *runner, *store, how.run, progress));
  const Outcome& outcome = result.experiments.front();
  const int signal = StopSignals::received();
  const int code = signal != 0 ? kExitSignal + signal : result.exit_code();
  if (options.json) {
    print_json(to_json(entry, outcome, code));
  } else {
    print_text(entry, outcome);
  }
  return static_cast<ExitCode>(code);
}

}  // namespace

void add_ledger_replay(Cli& cli, CLI::App& group) {
  CLI::App* command =
      group.add_subcommand("replay", "run an entry's experiment again, as an entry of its own");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("id", options->id, "the entry, or four or more characters that only it has")
      ->required()
      ->type_name("ID");
  add_budget_option(*command, options->measuring);
  add_no_pause_flag(*command, options->measuring);
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Exit codes are those of 'queue run': 0 whether the verdicts agree or not.\n"
      "Example:\n  reckon ledger replay rk-njf4");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return replay(cli, *options); }; });
}

}  // namespace reckon::cli
