// Runs the rounds of one experiment: pairs in child processes, each checked and then journalled.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "experiment/calm.h"
#include "experiment/journal.h"
#include "experiment/prepare.h"
#include "experiment/round_process.h"
#include "experiment/run.h"
#include "experiment/run_record.h"
#include "experiment/samples.h"
#include "ledger/record.h"

namespace reckon::experiment {

// What the experiments of one queue run share.
struct RunContext {
  const Queue& queue;
  Runner& runner;
  ledger::Store& store;
  const RunOptions& options;
  Progress& progress;
  RunRecord& record;
  std::string folder;  // of the journals
  double started = 0;

  [[nodiscard]] double now() const;  // seconds, monotonic
  // "" while there is time to go on, else what ends it: "the budget is spent".
  [[nodiscard]] std::string stop_reason() const;
};

// How a round ended.
struct RoundEnd {
  enum class Kind { kComplete, kPaused, kBroke, kOutOfMemory, kDisturbed };
  Kind kind = Kind::kComplete;
  // kBroke and kOutOfMemory: which arm, and what; kPaused: why; kDisturbed: by what.
  std::string detail;
  bool base_arm = false;                     // it was the base arm
  std::optional<ledger::TokenCheck> tokens;  // kBroke by tokens
};

class RoundRunner {
 public:
  // The first round of this run gets the index `first_index` in its entry.
  RoundRunner(RunContext& context, const Prepared& prepared, Journal& journal, int64_t first_index)
      : context_(context), prepared_(prepared), journal_(journal), first_index_(first_index) {}

  // Starts or continues round `number` (from 0) of the `count` that this run needs; `slot` is its
  // place among the rounds in the journal. Errors are Reckon's or the queue's own: the runner
  // failed, or an arm did what its plan does not list; then nothing may be recorded.
  [[nodiscard]] Result<RoundEnd> run(int number, int count, size_t slot);

  // What the arm's predictions cost, in a process of its own, once pairs are in the journal. An arm
  // that breaks is an end (kBroke). Errors: as run(), and not enough memory for both arms at once.
  struct ComparedQuality {
    Quality quality;
    std::optional<RoundEnd> end;  // set: there is no quality
  };
  [[nodiscard]] Result<ComparedQuality> compare_quality() const;

 private:
  struct MeasuredPair {
    JournalPair pair;
    std::optional<RoundEnd> end;  // set: there is no pair
  };
  [[nodiscard]] RoundIdentity new_round(int number) const;
  [[nodiscard]] Result<std::unique_ptr<RoundProcess>> start_process() const;
  // Warm-ups, then the missing pairs; a pair in a dirty window is measured again after the others.
  [[nodiscard]] Result<RoundEnd> run_pairs(RoundProcess& process, const CollectedRound& round,
                                           int number, int count);
  // One pair, journalled. An end leaves nothing in the journal.
  [[nodiscard]] Result<MeasuredPair> run_pair(RoundProcess& process, const JournalPair& slot,
                                              Calm& calm);
  [[nodiscard]] Result<MeasuredPair> measure_pair(RoundProcess& process, bool arm_first);
  [[nodiscard]] Result<std::optional<RoundEnd>> measure_arm(RoundProcess& process, int64_t arm,
                                                            RoundAnswer& answer) const;
  [[nodiscard]] static Result<double> metric_of(const Runner::MetricInfo& metric,
                                                const Measurement& measurement, const Arm& arm);
  [[nodiscard]] Status check_base_tokens(const Measurement& base) const;
  [[nodiscard]] Result<std::optional<RoundEnd>> check_tokens(const Measurement& base,
                                                             const Measurement& arm,
                                                             JournalPair& pair) const;

  RunContext& context_;
  const Prepared& prepared_;
  Journal& journal_;
  int64_t first_index_;
  Samples samples_;  // of the journal, kept up to date
};

}  // namespace reckon::experiment
