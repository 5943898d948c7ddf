// Experiments of a queue, from the ledger's answer to the ledger's new entries.
#pragma once

#include <span>
#include <vector>

#include "experiment/outcome.h"
#include "experiment/queue.h"
#include "experiment/rounds.h"

namespace reckon::experiment {

// The outcomes in order. Rounds of several experiments are interleaved: the first round of each,
// then the second of each, so that what changes with time changes all of them alike. Never fails as
// a whole: an error is an outcome (kFailed), and then nothing was recorded of that experiment.
[[nodiscard]] std::vector<Outcome> run_interleaved(RunContext& context,
                                                   std::span<const Experiment> experiments);

}  // namespace reckon::experiment
