// What became of one experiment of a queue, as data: for the terminal, --json and reports.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ledger/fold.h"
#include "measure/noise.h"
#include "measure/verdict.h"

namespace reckon::experiment {

enum class OutcomeKind {
  kVerdict,  // `record` has the verdict, whether by measurement or by the plan alone
  kFloor,    // identical arms: rounds were added to the noise band
  kKept,     // identical arms: the ledger already holds as many rounds as were asked for
  // Nothing was measured: known already, base does not fit, claim below what can be seen, a kernel
  // that this device lacks.
  kRefused,
  kPaused,  // the budget or the user ended it; finished pairs wait in the journal
  kFailed,  // Reckon or the queue is wrong; nothing was recorded
};
[[nodiscard]] std::string_view outcome_kind_name(OutcomeKind kind);  // "verdict", "floor", …

// The noise of identical arms, and what a comparison of `rounds` rounds could see with it.
struct FloorSummary {
  measure::Noise noise;
  int rounds = 2;
  std::optional<measure::Band> band;  // unset below two A/A rounds

  // There is a band, and it rests on enough rounds to be worth a reader's trust.
  [[nodiscard]] bool shows_band() const {
    return band.has_value() && noise.rounds >= measure::kShownNoiseRounds;
  }
};

struct Outcome {
  std::string id;  // in the queue
  std::string idea;
  OutcomeKind kind = OutcomeKind::kFailed;
  std::string text;                      // one line for people, whatever the kind
  std::string design;                    // what --auto-pairs made of it and why; "": nothing
  std::vector<std::string> notes;        // near and stale entries, warnings, what A/A rounds cost
  std::string entry;                     // ledger id; "" where nothing was recorded
  std::optional<ledger::Entry> record;   // the entry as the ledger holds it now
  std::optional<FloorSummary> floor;     // kFloor and kKept
  ErrorKind error = ErrorKind::kFailed;  // kFailed: whose fault
  double seconds = 0;
  // kRefused because the ledger answers already: with this verdict.
  std::optional<ledger::Verdict> known_verdict;
  std::optional<double> holm_p;  // of the mean, corrected over the queue's comparisons (Holm)

  // kVerdict only.
  [[nodiscard]] std::optional<ledger::Verdict> verdict() const;
};

struct QueueOutcome {
  std::string queue;
  std::vector<Outcome> experiments;  // as in the queue

  // 0; 1 where Reckon failed, else 2 where the queue is wrong, in any experiment; 3 where every
  // experiment was refused or kept.
  [[nodiscard]] int exit_code() const;
  // As a gate before a merge: 1 and 2 as above; else 4 where any experiment ended, now or earlier
  // by what the ledger knows, in LOST, BROKE or OUT-OF-MEMORY; else 3 where any was not decided
  // (paused, refused without a known verdict, VOID by a disturbed machine); else 0.
  [[nodiscard]] int gate_exit_code() const;
};

[[nodiscard]] nlohmann::json to_json(const Outcome& outcome);
[[nodiscard]] nlohmann::json to_json(const QueueOutcome& outcome);

}  // namespace reckon::experiment
