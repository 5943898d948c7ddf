// Entries and floors in one sentence. Pure and thread-safe.
#pragma once

#include <optional>
#include <string>

#include "experiment/outcome.h"
#include "ledger/fold.h"

namespace reckon::experiment {

// "LOST: -3.9% prefill_tok_per_s (round 1 / round 2: 949.4 / 951.9 -> 914.6 / 914.7 tok/s), noise
// band ±0.4% from 20 A/A rounds; side effects: 2 rows". The entry has a verdict.
[[nodiscard]] std::string verdict_sentence(const ledger::Entry& entry);

// "mean KL 0.0012 nats, perplexity +0.31%, 15 of 16 likeliest tokens equal; tokens part at 5 of
// 16";
// "" where arms' tokens had to be identical.
[[nodiscard]] std::string quality_text(const ledger::TokenCheck& tokens);

// The noise band, unless it rests on so few A/A rounds that it is better not shown.
[[nodiscard]] std::optional<ledger::Interval> shown_noise_band(const ledger::Numbers& numbers);

// "20 A/A rounds, s_m 0.12%; 2 rounds see +0.47% and more, noise band ±0.36%"; "3 A/A rounds; noise
// band not yet known: 3 of 20 A/A rounds".
[[nodiscard]] std::string floor_sentence(const FloorSummary& floor);

}  // namespace reckon::experiment
