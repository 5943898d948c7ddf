// The table under a verdict's mechanism, which fills itself in.
#pragma once

#include "base/result.h"
#include "experiment/prepare.h"
#include "experiment/runner.h"
#include "ledger/record.h"

namespace reckon::experiment {

// Asks the runner about both arms, each with the median of its rounds, and adds a line a row to
// body.evidence ("scratch: base 1.0 MiB, arm 1.5 MiB") and all rows to its extra "evidence_table".
// A verdict without numbers gets none. Errors: the runner's.
[[nodiscard]] Status add_evidence(const Prepared& prepared, Runner& runner,
                                  ledger::VerdictBody& body);

}  // namespace reckon::experiment
