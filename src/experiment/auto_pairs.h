// `--auto-pairs`: a design that is too short for its claim is lengthened instead of refused.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/prepare.h"
#include "experiment/runner.h"
#include "ledger/catalog.h"

namespace reckon::experiment {

// Experiments that are run in the place of one, in order: itself where its claim can be seen, where
// anything else decides it, or where no design would do. Otherwise it has the rounds and pairs of
// measure::auto_pairs and says so (Experiment::lengthened), behind a floor of its new number of
// pairs where that changed. `options` as the run judges by. A mistake in the queue is left for the
// run to report.
[[nodiscard]] std::vector<Experiment> lengthen(const std::string& queue_path,
                                               const Experiment& experiment, Runner& runner,
                                               ledger::Catalog& ledger,
                                               const JudgeOptions& options);

}  // namespace reckon::experiment
