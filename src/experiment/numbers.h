// The statistics of a verdict as the ledger keeps them. Pure and thread-safe.
#pragma once

#include <vector>

#include "base/result.h"
#include "experiment/prepare.h"
#include "experiment/samples.h"
#include "ledger/record.h"

namespace reckon::experiment {

// Decides WON, LOST, NEUTRAL or INCONCLUSIVE over `rounds` (at least one; the arms dispatched
// different code) and fills in the verdict, its numbers and what a reader must know beside them.
[[nodiscard]] Status add_numbers(const Prepared& prepared, const Judgement& judgement,
                                 const Samples& samples,
                                 const std::vector<ledger::MeasuredBody>& rounds,
                                 ledger::VerdictBody& body);

// "3 of 20 A/A rounds are stored; the 17 that are missing take about 12 min". seconds_a_round 0:
// unknown.
[[nodiscard]] std::string missing_noise_text(const measure::Noise& noise, double seconds_a_round);

}  // namespace reckon::experiment
