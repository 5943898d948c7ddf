// What stands beside a verdict and decides nothing: rank tests over all pairs, the p-value of the
// mean, drift of the base arm. Pure and thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/outcome.h"
#include "ledger/record.h"
#include "measure/pairs.h"
#include "measure/verdict.h"

namespace reckon::experiment {

// Adds "p_value" (of the mean against the noise; absent without a band), "beside" (pairs, better,
// wilcoxon_p, sign_p) and "drift" (p, and per_pair, a share) to numbers.extra. Errors: a value
// without a logarithm.
[[nodiscard]] Status add_beside(const std::vector<ledger::MeasuredBody>& rounds,
                                measure::Better better, const measure::Decision& decision,
                                ledger::Numbers& numbers);

// "beside the verdict: p 0.0004; of 12 pairs 11 better, sign test p 0.0063, Wilcoxon p 0.001"; ""
// where the entry has none. With holm_p: "p 0.0004 (0.002 after Holm)".
[[nodiscard]] std::string beside_text(const ledger::Numbers& numbers,
                                      std::optional<double> holm_p = {});

// "the base arm drifted by -0.31% a pair (p 0.0005)" where a trend is that certain (p < 0.01); "".
[[nodiscard]] std::string drift_text(const ledger::Numbers& numbers);

// Sets holm_p of every outcome with a p-value, over all of them.
void add_holm(QueueOutcome& outcome);

}  // namespace reckon::experiment
