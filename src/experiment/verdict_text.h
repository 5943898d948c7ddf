// Entries and floors in one sentence. Pure and thread-safe.
#pragma once

#include <string>

#include "experiment/outcome.h"
#include "ledger/fold.h"

namespace reckon::experiment {

// "LOST: -3.9% prefill_tok_per_s (round 1 / round 2: 949.4 / 951.9 -> 914.6 / 914.7 tok/s), noise
// band ±0.4% from 20 A/A rounds; side effects: 2 rows". The entry has a verdict.
[[nodiscard]] std::string verdict_sentence(const ledger::Entry& entry);

// "20 A/A rounds, s_m 0.12%; 2 rounds see +0.47% and more, noise band ±0.36%".
[[nodiscard]] std::string floor_sentence(const FloorSummary& floor);

}  // namespace reckon::experiment
