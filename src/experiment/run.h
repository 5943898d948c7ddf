// Runs and prices queues: consult the ledger, compare the plans, measure pairs in child processes,
// give a verdict, write it down.
//
// A run may be killed at any moment: each pair is on disk (journal.h) before the next begins, and
// the same call continues where it stopped, losing no finished pair and counting none twice.
// One thread; that thread starts the child processes, which die with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/outcome.h"
#include "experiment/queue.h"
#include "experiment/runner.h"
#include "ledger/store.h"

namespace reckon::experiment {

class MachineWatch;  // machine_watch.h

struct RunOptions {
  // A process that calls serve_round() on its standard input and output: {self, "round-worker"}.
  std::vector<std::string> worker_command;
  std::string command;  // what the user typed; recorded as what reproduces the entry
  std::string writer;   // ledger/writer.h
  // Not empty: measure although the ledger already knows, as an entry of its own; recorded.
  std::string force_reason;
  bool auto_pairs = false;               // lengthen what is too short for its claim (auto_pairs.h)
  std::optional<double> budget_seconds;  // checked at each pair's end
  std::function<bool()> stop_requested;  // likewise; unset: never
  std::optional<uint64_t> seed;          // of slot orders; unset: drawn
  std::function<double()> now_seconds;   // monotonic; unset: the steady clock
  // Pairs in dirty windows are kept, not counted, and measured again once the machine is calm.
  // Null: nobody looks. Outlives the run.
  MachineWatch* watch = nullptr;
  double most_wait_seconds = 300;             // for calm; then the run stops, to go on later
  std::function<void(double)> sleep_seconds;  // unset: really
};

struct PairProgress {
  std::string experiment;
  std::string round_id;
  int round = 0, rounds = 0;  // this one, counted from 1, of those that this run needs
  int pair = 0, pairs = 0;    // this one, counted from 1, of those of the round; warm-ups apart
  bool warmup = false;
  double base = 0, arm = 0;  // in `unit`
  std::string unit;
  double seconds = 0;     // that the pair took
  std::string disturbed;  // why it does not count; "": it does
};

// Called from the thread that runs the queue. A pair is on disk before on_pair().
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void on_experiment(const Experiment& /*experiment*/, size_t /*index*/, size_t /*count*/) {
  }
  virtual void on_note(const Experiment& /*experiment*/, const std::string& /*text*/) {}
  virtual void on_pair(const PairProgress& /*pair*/) {}
  virtual void on_outcome(const Outcome& /*outcome*/) {}
};

// The queue is checked whole before its first measurement, as check_queue does: where an experiment
// is wrong nothing is measured, and the others are not started (kPaused). What happens to single
// experiments is in the outcome. Errors: another process runs this queue on
// this ledger (the message names it), or the journal folder cannot be written.
[[nodiscard]] Result<QueueOutcome> run_queue(const Queue& queue, Runner& runner,
                                             ledger::Store& store, const RunOptions& options,
                                             Progress& progress);

// What run_queue would do now; runs and writes nothing.
struct CheckedExperiment {
  enum class Kind { kWouldRun, kWouldRefuse, kWouldBeVoid, kWouldNotFit, kFailed };
  std::string id;
  Kind kind = Kind::kFailed;
  std::string text;                              // one line for people
  std::vector<std::string> reasons;              // kWouldBeVoid: of the plan, deciding one first
  std::vector<std::string> notes;                // near and stale entries, missing A/A rounds
  std::vector<std::string> only_base, only_arm;  // predicted dispatch that differs at the reach
  uint64_t base_bytes = 0, arm_bytes = 0;        // planned
  int rounds = 0, pairs = 0;                     // that would be run
  std::optional<double> seconds;                 // from earlier rounds of the same workload class
  int missing_noise_rounds = 0;
  std::optional<double> smallest_effect;  // that the design can see, a share; unset below two A/A
  std::optional<int> rounds_to_see;       // the claim; unset without one or below two A/A rounds
  ErrorKind error = ErrorKind::kFailed;
};
struct QueueCheck {
  std::string queue;
  std::vector<CheckedExperiment> experiments;
  [[nodiscard]] int exit_code() const;  // as QueueOutcome's
};

enum class TooShort { kRefuse, kLengthen };  // as RunOptions::auto_pairs

[[nodiscard]] QueueCheck check_queue(const Queue& queue, Runner& runner, const ledger::Store& store,
                                     TooShort too_short = TooShort::kRefuse);
[[nodiscard]] nlohmann::json to_json(const QueueCheck& check);

}  // namespace reckon::experiment
