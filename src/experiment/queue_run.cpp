#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "base/hash.h"
#include "experiment/auto_pairs.h"
#include "experiment/beside.h"
#include "experiment/experiment_run.h"
#include "experiment/file_lock.h"
#include "experiment/journal.h"
#include "experiment/run.h"
#include "ledger/catalog.h"

namespace reckon::experiment {
namespace {

Outcome not_started(const Experiment& experiment, const std::string& why) {
  Outcome outcome;
  outcome.id = experiment.id;
  outcome.idea = experiment.idea;
  outcome.design = experiment.lengthened;
  outcome.kind = OutcomeKind::kPaused;
  outcome.text = "not started: " + why;
  return outcome;
}

// Experiments that are run in the place of the arms of one, lengthened where that was asked for:
// A/A rounds that they need first.
std::vector<Experiment> in_place_of(RunContext& context, std::span<const Experiment> arms) {
  if (!context.options.auto_pairs) return {arms.begin(), arms.end()};
  const auto ledger = ledger::open_catalog(context.store);
  if (!ledger.ok()) return {arms.begin(), arms.end()};  // the run says why
  JudgeOptions options;
  options.force = !context.options.force_reason.empty();
  std::vector<Experiment> experiments;
  for (const Experiment& arm : arms) {
    const std::vector<Experiment> list =
        lengthen(context.queue.path, arm, context.runner, **ledger, options);
    experiments.insert(experiments.end(), list.begin(), list.end());
  }
  std::stable_partition(experiments.begin(), experiments.end(),
                        [](const Experiment& experiment) { return experiment.is_floor(); });
  return experiments;
}

// How many from `first` on are arms of one experiment.
size_t arms_together(std::span<const Experiment> experiments, size_t first) {
  size_t end = first + 1;
  const std::string& group = experiments[first].group;
  while (!group.empty() && end < experiments.size() && experiments[end].group == group) ++end;
  return end - first;
}

std::vector<Outcome> run_arms(RunContext& context, std::span<const Experiment> arms) {
  const std::string why = context.stop_reason();
  if (why.empty()) return run_interleaved(context, arms);
  std::vector<Outcome> outcomes;
  for (const Experiment& arm : arms) outcomes.push_back(not_started(arm, why));
  return outcomes;
}

// What becomes of a queue with mistakes in it; nothing where there are none.
std::optional<QueueOutcome> rejected(const Queue& queue, const QueueCheck& check) {
  QueueOutcome result;
  result.queue = queue.name;
  bool any = false;
  for (size_t i = 0; i < check.experiments.size(); ++i) {
    const CheckedExperiment& checked = check.experiments[i];
    Outcome outcome = not_started(queue.experiments[i], "another experiment of the queue is wrong");
    if (checked.kind == CheckedExperiment::Kind::kFailed) {
      any = true;
      outcome.kind = OutcomeKind::kFailed;
      outcome.error = checked.error;
      outcome.text = checked.text;
    }
    result.experiments.push_back(std::move(outcome));
  }
  return any ? std::optional(std::move(result)) : std::nullopt;
}

// Every outcome, in order.
std::vector<Outcome> run_all(RunContext& context) {
  std::vector<Outcome> outcomes;
  const std::span<const Experiment> all = context.queue.experiments;
  for (size_t i = 0; i < all.size(); i += arms_together(all, i)) {
    const std::vector<Experiment> list =
        in_place_of(context, all.subspan(i, arms_together(all, i)));
    for (size_t k = 0; k < list.size(); k += arms_together(list, k)) {
      context.progress.on_experiment(list[k], i, all.size());
      for (Outcome& outcome :
           run_arms(context, std::span(list).subspan(k, arms_together(list, k)))) {
        context.progress.on_outcome(outcome);
        outcomes.push_back(std::move(outcome));
      }
    }
  }
  return outcomes;
}

}  // namespace

Result<QueueOutcome> run_queue(const Queue& queue, Runner& runner, ledger::Store& store,
                               const RunOptions& options, Progress& progress) {
  TRY_ASSIGN(const std::string folder, journal_folder(store));
  const std::string stem = (std::filesystem::path(folder) /
                            fmt::format("queue-{}", Hasher().add_field(queue.name).base32(16)))
                               .string();
  TRY_ASSIGN(const std::unique_ptr<FileLock> lock,
             FileLock::acquire(stem + ".lock",
                               fmt::format("queue '{}' is being run on this ledger", queue.name)));
  TRY_ASSIGN(RunRecord record, RunRecord::open(stem + ".run"));
  RunContext context{queue, runner, store, options, progress, record, folder, 0};
  context.started = context.now();
  if (auto wrong = rejected(queue, check_queue(queue, runner, store))) return *std::move(wrong);
  QueueOutcome result;
  result.queue = queue.name;
  result.experiments = run_all(context);
  add_holm(result);
  const bool paused =
      std::any_of(result.experiments.begin(), result.experiments.end(),
                  [](const Outcome& one) { return one.kind == OutcomeKind::kPaused; });
  if (!paused) TRY(record.finish());
  return result;
}

}  // namespace reckon::experiment
