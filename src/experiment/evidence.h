// The table under a verdict's mechanism, which fills itself in.
#pragma once

#include "base/result.h"
#include "experiment/prepare.h"
#include "experiment/runner.h"
#include "experiment/samples.h"
#include "ledger/record.h"

namespace reckon::experiment {

// Asks the runner about both arms, each with the median of its rounds, and adds a line a row to
// body.evidence ("scratch: base 1.0 MiB, arm 1.5 MiB") and all rows to its extra "evidence_table".
// To them come the kernels of a device that took other resources in one arm than in the other, as
// the samples say. A verdict without numbers gets none. Errors: the runner's.
[[nodiscard]] Status add_evidence(const Prepared& prepared, const Samples& samples, Runner& runner,
                                  ledger::VerdictBody& body);

}  // namespace reckon::experiment
