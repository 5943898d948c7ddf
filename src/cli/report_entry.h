// The page of one entry, for a reviewer who has one minute: the verdict in a sentence, every pair
// and round, why, then what proves it. Pure.
#pragma once

#include <string>

#include "cli/report_parts.h"

namespace reckon::cli {

[[nodiscard]] std::string entry_document(const ledger::Entry& entry, const ReportContext& context);

// The pairs as text, for the page's twin: a line a round. "" where there is nothing to show.
[[nodiscard]] std::string pairs_text(const ledger::Entry& entry, const ReportContext& context);

}  // namespace reckon::cli
