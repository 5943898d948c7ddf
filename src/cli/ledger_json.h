// Ledger entries as JSON: the stable keys that scripts read (docs/cli.md). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "ledger/chain.h"
#include "ledger/consult.h"
#include "ledger/fold.h"
#include "ledger/summary.h"

namespace reckon::cli {

// What a list shows of an entry.
[[nodiscard]] nlohmann::json entry_summary_json(const ledger::Summary& entry);

// The whole entry: the summary's keys, and idea, rounds, record, history and notes as the ledger
// has them.
[[nodiscard]] nlohmann::json entry_json(const ledger::Entry& entry, const ledger::Chain& chain);

// What the ledger knows about one experiment: block, join (objects or null), allowed, stale, offers
// and near (arrays).
[[nodiscard]] nlohmann::json consultation_json(const ledger::Consultation& consultation);

}  // namespace reckon::cli
