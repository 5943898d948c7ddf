// `reckon ab`: one experiment with two commands as arms, without a queue file.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "adapters/open.h"
#include "base/text.h"
#include "cli/ab_queue.h"
#include "cli/command.h"
#include "cli/ledger_access.h"
#include "cli/measuring_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/queue_progress.h"
#include "cli/scratch_store.h"
#include "cli/signals.h"
#include "experiment/markdown.h"
#include "experiment/run.h"
#include "experiment/words.h"
#include "measure/verdict.h"

namespace reckon::cli {
namespace {

using experiment::Outcome;
using experiment::Queue;
using experiment::QueueOutcome;

struct Options {
  AbOptions ab;
  MeasuringOptions measuring;
  bool no_record = false;
  bool json = false;
};

Result<std::unique_ptr<ledger::Store>> open_store(const Cli& cli, const Options& options) {
  TRY_ASSIGN(auto store, open_ledger(cli));
  if (!options.no_record) return store;
  TRY_ASSIGN(auto scratch, ScratchStore::create(std::move(store)));
  return std::unique_ptr<ledger::Store>(std::move(scratch));
}

// Before anything runs: is every command there, and is there anything to measure? A/A rounds are
// left out where the comparison behind them would not run; else their cost is said.
Status look_ahead(Queue& queue, experiment::Runner& runner, const ledger::Store& store,
                  const Options& options) {
  const experiment::QueueCheck check = experiment::check_queue(queue, runner, store);
  for (const experiment::CheckedExperiment& checked : check.experiments) {
    if (checked.kind != experiment::CheckedExperiment::Kind::kFailed) continue;
    return Error{checked.error, without_place(checked.text)};
  }
  if (queue.experiments.size() < 2) return {};
  const experiment::CheckedExperiment& floor = check.experiments.front();
  const bool forced = !options.measuring.force_reason.empty();
  if (check.experiments.back().kind != experiment::CheckedExperiment::Kind::kWouldRun && !forced) {
    queue.experiments.erase(queue.experiments.begin());
  } else if (floor.rounds > 0) {
    const int runs = floor.rounds * 2 * (options.ab.pairs + options.ab.warmup);
    fmt::print(stderr, "{} first: the base command runs {} times{}\n",
               counted(floor.rounds, "A/A round"), runs,
               floor.seconds ? ", about " + experiment::duration_text(*floor.seconds) : "");
  }
  return {};
}

void mark_provisional(QueueOutcome& outcome) {
  for (Outcome& one : outcome.experiments) {
    one.entry.clear();
    one.text = "not recorded, provisional: " + one.text;
  }
}

// What would make an INCONCLUSIVE answer possible to decide: A/A rounds that are missing.
struct NextStep {
  int64_t rounds = 0;
  double seconds = 0;
  std::string command;
};

double seconds_a_round(const ledger::Entry& entry, const AbOptions& options) {
  double seconds = 0;
  int64_t pairs = 0;
  for (const ledger::MeasuredBody& measured : entry.rounds) {
    for (const ledger::PairSample& pair : measured.round.pairs) {
      if (pair.warmup || !pair.extra.contains("seconds")) continue;
      seconds += pair.extra["seconds"].get<double>();
      ++pairs;
    }
  }
  return pairs == 0 ? 0 : seconds / static_cast<double>(pairs) * (options.pairs + options.warmup);
}

std::optional<NextStep> next_step(const Cli& cli, const Options& options,
                                  const QueueOutcome& outcome) {
  const Outcome& last = outcome.experiments.back();
  if (last.verdict() != ledger::Verdict::kInconclusive || !last.record->verdict->numbers) return {};
  NextStep next;
  next.rounds =
      measure::kMinimumNoiseRounds - last.record->verdict->numbers->noise_rounds.value_or(0);
  if (next.rounds <= 0) return {};
  next.seconds = seconds_a_round(*last.record, options.ab) * static_cast<double>(next.rounds);
  next.command = fmt::format("{} --floor {}", cli.typed, measure::kMinimumNoiseRounds);
  return next;
}

void print_text(const Queue& queue, const QueueOutcome& outcome,
                const std::optional<NextStep>& next) {
  const experiment::Experiment& comparison = queue.experiments.back();
  const experiment::CommandMetric& metric = comparison.workload.command->metric;
  Page page;
  page.field("base", comparison.switch_pair.base);
  page.field("arm", comparison.switch_pair.arm);
  page.line("metric", fmt::format("{}{}: {}, {} is better", metric.name,
                                  metric.unit.empty() ? "" : " (" + metric.unit + ")", metric.read,
                                  metric.higher_is_better ? "higher" : "lower"));
  fmt::print("{}\n{}", page.text(), text_table(outcome));
  if (!next) return;
  // In one piece, so that it can be copied.
  fmt::print("\n{} missing, about {}; this measures them:\n  {}\n",
             counted(next->rounds, "A/A round"), experiment::duration_text(next->seconds),
             next->command);
}

void print_json_outcome(const Options& options, const QueueOutcome& outcome,
                        const std::optional<NextStep>& next) {
  nlohmann::json json = to_json(outcome);
  json["recorded"] = !options.no_record;
  if (next) {
    json["next"] = {{"command", next->command},
                    {"missing_noise_rounds", next->rounds},
                    {"seconds", next->seconds}};
  }
  print_json(json);
}

Result<ExitCode> ab(const Cli& cli, const Options& options) {
  TRY_ASSIGN(const Measuring how, measuring(cli, options.measuring));
  TRY_ASSIGN(Queue queue, ab_queue(options.ab));
  TRY_ASSIGN(const auto runner, adapters::open_runner(queue.runner));
  TRY_ASSIGN(const auto store, open_store(cli, options));
  TRY(look_ahead(queue, *runner, *store, options));
  const StopSignals signals;
  QueueProgress progress;
  TRY_ASSIGN(QueueOutcome outcome,
             experiment::run_queue(queue, *runner, *store, how.run, progress));
  for (const Outcome& one : outcome.experiments) {
    if (one.kind != experiment::OutcomeKind::kFailed) continue;
    return Error{one.error, without_place(one.text)};
  }
  if (options.no_record) mark_provisional(outcome);
  const std::optional<NextStep> next = next_step(cli, options, outcome);
  if (options.json) {
    print_json_outcome(options, outcome, next);
  } else {
    print_text(queue, outcome, next);
  }
  const int signal = StopSignals::received();
  return static_cast<ExitCode>(signal != 0 ? kExitSignal + signal : outcome.exit_code());
}

void add_what(CLI::App& command, AbOptions& options) {
  command.add_option("--base", options.base, "the command as it is, for /bin/sh -c")
      ->type_name("CMD")
      ->required();
  command.add_option("--arm", options.arm, "the command to try against it")
      ->type_name("CMD")
      ->required();
  command
      .add_option("--metric", options.metric,
                  "wall, cpu, json:$.PATH or regex:PATTERN (wall: time in ms)")
      ->type_name("READ");
  command.add_option("--unit", options.unit, "of what is read, to be shown")->type_name("UNIT");
  command.add_option("--better", options.better, "higher or lower (higher; of times lower)")
      ->check(one_of({"higher", "lower"}))
      ->type_name("WHICH");
  command.add_option("--env", options.env, "a variable of both arms (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--dispatch-file", options.dispatch_file,
                  "a file that the command writes, a line a thing it dispatched")
      ->type_name("FILE");
  command
      .add_option("--input", options.inputs,
                  "a file whose content counts (repeatable; the first that is one)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command.add_option("--tag", options.tags, "tells workloads apart (repeatable)")
      ->type_name("KEY=WORD")
      ->allow_extra_args(false);
}

void add_design(CLI::App& command, AbOptions& options) {
  const auto count = [&](const char* name, int& value, int least, const char* help) {
    return command.add_option(name, value, help)->type_name("N")->check(whole_number(least, 1000));
  };
  count("--rounds", options.rounds, 1, "rounds, each in a fresh process (2)");
  count("--pairs", options.pairs, 1, "counted pairs a round (6)");
  count("--warmup", options.warmup, 0, "pairs before them that are not counted (1)");
  count("--floor", options.floor, 1,
        "first measure A/A rounds until the ledger holds N (20 decide)")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  command.add_option("--claim", options.claim, "the least gain worth having: +2%")
      ->type_name("SHARE");
  command.add_option("--timeout", options.timeout, "for one run of a command (300s)")
      ->type_name("TIME");
  command.add_option("--name", options.name, "of the experiment in the ledger (ab)")
      ->type_name("NAME");
  command.add_option("--idea", options.idea, "what is tried, in a sentence")->type_name("TEXT");
}

}  // namespace

void add_ab_command(Cli& cli) {
  CLI::App* command =
      cli.app.add_subcommand("ab", "compare two commands, any programs, and record the verdict");
  auto options = std::make_shared<Options>();
  add_what(*command, options->ab);
  add_design(*command, options->ab);
  add_budget_option(*command, options->measuring);
  add_force_option(*command, options->measuring);
  add_no_pause_flag(*command, options->measuring);
  command->add_flag("--no-record", options->no_record,
                    "write nothing to the ledger; the answer is provisional");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Ctrl-C stops at the end of the pair; the same command goes on from there. A verdict needs\n"
      "20 A/A rounds of the base command, once: --floor 20.\n"
      "Examples:\n"
      "  reckon ab --base 'gzip -6 -c data > /dev/null' --arm 'gzip -1 -c data > /dev/null'\n"
      "  reckon ab --base './bench --old' --arm './bench --new' --metric 'json:$.tok_s' \\\n"
      "    --unit tok/s --claim +2% --floor 20\n"
      "  reckon ab --base 'python3 a.py' --arm 'python3 b.py' --better lower \\\n"
      "    --metric 'regex:took ([0-9.]+) ms' --no-record");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return ab(cli, *options); }; });
}

}  // namespace reckon::cli
