// Everything that is known about an experiment before anything runs: its arms, their plans, its
// scope, and what the ledger says. Writes nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/queue.h"
#include "experiment/runner.h"
#include "ledger/catalog.h"
#include "ledger/predicate.h"
#include "ledger/record.h"
#include "measure/design.h"
#include "measure/verdict.h"

namespace reckon::experiment {

struct Prepared {
  Experiment experiment;  // the switch's base value filled in
  Runner::MetricInfo metric;
  std::optional<Runner::MetricInfo> control;
  Arm base, arm;  // with their memory limits; the same but for the name where arms are identical
  Subject subject;
  Prediction base_plan, arm_plan;
  ledger::Scope scope;
  std::map<std::string, std::string> sources;  // in reach
  ledger::Proof predicted;                     // as the plans say
  ledger::Facts facts;                         // of the environment, for conditions (facts.h)
};

// Errors (kUsage where the queue is wrong) start with the queue file, line and experiment. Not so
// kUnsupported, the sentence that refuses an experiment which this device cannot run.
[[nodiscard]] Result<Prepared> prepare(const std::string& queue_path, const Experiment& experiment,
                                       Runner& runner);

// What the pairs of this experiment wait under: equal for equal scope and equal sources in reach.
[[nodiscard]] std::string journal_key(const Prepared& prepared);

// What happens next, given the ledger.
struct Judgement {
  enum class Next {
    kRun,
    kRefuse,             // `text` says why
    kKeep,               // identical arms: as many rounds as asked for are there
    kRecordVoid,         // equal plans at the reach
    kRecordOutOfMemory,  // the arm does not fit
  };
  Next next = Next::kRun;
  std::string text;
  std::vector<std::string> reasons;  // kRecordVoid: of the plan, the deciding one first
  std::vector<std::string> notes;    // stale, near and offered entries
  measure::Noise noise;              // of the workload class, so far
  measure::Noise control_noise;      // of the control metric, where there is one
  // That a counted pair of this workload class took on this device, on average; unset: never run.
  std::optional<double> seconds_a_pair;
  int rounds = 0;                             // to run now
  std::vector<ledger::MeasuredBody> earlier;  // the rounds that new ones join
  int64_t first_index = 0;                    // of the next round in its entry
  std::string joins;                          // the entry that takes the rounds; "": a new one
  std::optional<measure::Band> band;          // of the whole design; unset below two A/A rounds
  std::optional<int> rounds_to_see;           // the claim; unset without a claim or a band, and
                                              // where no number of rounds does
  std::optional<measure::Design> longer;      // the claim is too small: a design that sees it
  std::string blocked_by;                     // kRefuse: the entry that answers already, if any
  bool overrides_ledger = false;              // forced past an entry that blocks or would be joined
};

struct JudgeOptions {
  bool force = false;  // go on where the ledger blocks, with an entry of its own: nothing is joined
  std::string now;     // as Event::time, for the age of A/A rounds; "": now
};

// Errors: noise that cannot be computed, a ledger that cannot be read.
[[nodiscard]] Result<Judgement> judge(const Prepared& prepared, ledger::Catalog& ledger,
                                      const JudgeOptions& options);

}  // namespace reckon::experiment
