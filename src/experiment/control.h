// The negative control: a metric that the switch cannot move, measured in the same pairs. Where it
// moves by more than its own noise, something else differed between the arms, and then the verdict
// on the metric is not given. Pure and thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/prepare.h"
#include "ledger/record.h"
#include "measure/pairs.h"

namespace reckon::experiment {

// The control's values of a round; empty where it did not measure that one.
[[nodiscard]] std::vector<measure::Pair> control_pairs(const ledger::Round& round,
                                                       const std::string& metric);

// Adds the control's effect to the numbers (extra "control"), and where it moved makes the verdict
// INCONCLUSIVE with the reason. The experiment has a control, the body has numbers. With fewer than
// 20 A/A rounds that measured the control it is shown and decides nothing.
[[nodiscard]] Status apply_control(const Prepared& prepared, const Judgement& judgement,
                                   const std::vector<ledger::MeasuredBody>& rounds,
                                   ledger::VerdictBody& body);

// "control prefill_tok_per_s +0.1%, within ±0.4%"; "" where the entry has none.
[[nodiscard]] std::string control_text(const ledger::Numbers& numbers);

}  // namespace reckon::experiment
