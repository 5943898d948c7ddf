#include <fmt/format.h>

#include <filesystem>

#include "base/hash.h"
#include "experiment/auto_pairs.h"
#include "experiment/beside.h"
#include "experiment/experiment_run.h"
#include "experiment/file_lock.h"
#include "experiment/journal.h"
#include "experiment/run.h"

namespace reckon::experiment {
namespace {

Outcome not_started(const Experiment& experiment, const std::string& why) {
  Outcome outcome;
  outcome.id = experiment.id;
  outcome.idea = experiment.idea;
  outcome.kind = OutcomeKind::kPaused;
  outcome.text = "not started: " + why;
  return outcome;
}

std::vector<Experiment> in_place_of(RunContext& context, const Experiment& experiment) {
  if (!context.options.auto_pairs) return {experiment};
  Lengthened list = lengthen(context.queue.path, experiment, context.runner, context.store);
  if (!list.note.empty()) context.progress.on_note(experiment, list.note);
  return std::move(list.experiments);
}

}  // namespace

Result<QueueOutcome> run_queue(const Queue& queue, Runner& runner, ledger::Store& store,
                               const RunOptions& options, Progress& progress) {
  TRY_ASSIGN(const std::string folder, journal_folder(store.location()));
  const std::string stem = (std::filesystem::path(folder) /
                            fmt::format("queue-{}", Hasher().add_field(queue.name).base32(16)))
                               .string();
  TRY_ASSIGN(const std::unique_ptr<FileLock> lock,
             FileLock::acquire(stem + ".lock",
                               fmt::format("queue '{}' is being run on this ledger", queue.name)));
  TRY_ASSIGN(RunRecord record, RunRecord::open(stem + ".run"));
  RunContext context{queue, runner, store, options, progress, record, folder, 0};
  context.started = context.now();
  QueueOutcome result;
  result.queue = queue.name;
  bool paused = false;
  for (size_t i = 0; i < queue.experiments.size(); ++i) {
    for (const Experiment& experiment : in_place_of(context, queue.experiments[i])) {
      progress.on_experiment(experiment, i, queue.experiments.size());
      const std::string why = context.stop_reason();
      Outcome outcome =
          why.empty() ? run_experiment(context, experiment) : not_started(experiment, why);
      progress.on_outcome(outcome);
      paused = paused || outcome.kind == OutcomeKind::kPaused;
      result.experiments.push_back(std::move(outcome));
    }
  }
  add_holm(result);
  if (!paused) TRY(record.finish());
  return result;
}

}  // namespace reckon::experiment
