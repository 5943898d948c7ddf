// One experiment of a queue, from the ledger's answer to the ledger's new entry.
#pragma once

#include "experiment/outcome.h"
#include "experiment/queue.h"
#include "experiment/rounds.h"

namespace reckon::experiment {

// Never fails as a whole: an error is the outcome (kFailed), and then nothing was recorded.
[[nodiscard]] Outcome run_experiment(RunContext& context, const Experiment& experiment);

}  // namespace reckon::experiment
