#include <fmt/format.h>

#include <filesystem>

#include "base/hash.h"
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

}  // namespace

Result<QueueOutcome> run_queue(const Queue& queue, Runner& runner, ledger::Store& store,
                               const RunOptions& options, Progress& progress) {
  RunContext context{queue, runner, store, options, progress, "", 0};
  context.started = context.now();
  TRY_ASSIGN(context.folder, journal_folder(store.location()));
  const std::string lock_path =
      (std::filesystem::path(context.folder) /
       fmt::format("queue-{}.lock", Hasher().add_field(queue.name).base32(16)))
          .string();
  TRY_ASSIGN(const std::unique_ptr<FileLock> lock,
             FileLock::acquire(lock_path,
                               fmt::format("queue '{}' is being run on this ledger", queue.name)));
  QueueOutcome result;
  result.queue = queue.name;
  for (size_t i = 0; i < queue.experiments.size(); ++i) {
    const Experiment& experiment = queue.experiments[i];
    progress.on_experiment(experiment, i, queue.experiments.size());
    const std::string why = context.stop_reason();
    Outcome outcome =
        why.empty() ? run_experiment(context, experiment) : not_started(experiment, why);
    progress.on_outcome(outcome);
    result.experiments.push_back(std::move(outcome));
  }
  return result;
}

}  // namespace reckon::experiment
