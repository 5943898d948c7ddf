// The lower half of an entry's page: what proves the verdict, what it is about, how to repeat it.
// Pure; each returns nothing where the entry has nothing to say.
#pragma once

#include "cli/report_parts.h"

namespace reckon::cli {

[[nodiscard]] Html dispatch_section(const ledger::Entry& entry);
[[nodiscard]] Html tokens_section(const ledger::Entry& entry);
[[nodiscard]] Html memory_section(const ledger::Entry& entry);
[[nodiscard]] Html scope_section(const ledger::Entry& entry, const ReportContext& context);
[[nodiscard]] Html environment_section(const ledger::Entry& entry);
[[nodiscard]] Html history_section(const ledger::Entry& entry, const ReportContext& context);
[[nodiscard]] Html reproduce_section(const ledger::Entry& entry, const ReportContext& context);

}  // namespace reckon::cli
