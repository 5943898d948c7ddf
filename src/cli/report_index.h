// The index of a report and its lists: made in advance for every switch, model and device, each
// cut by verdict, so that filters need no script. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/report_parts.h"

namespace reckon::cli {

inline constexpr size_t kListRows = 250;  // entries a page of a list

// Takes a file's name in the report's folder and its text.
using TakePage = std::function<Status(const std::string& file, std::string_view text)>;

// Every list, page by page. `entries` newest first. Stops at the first error that `take` returns.
[[nodiscard]] Status make_lists(const std::vector<const ledger::Entry*>& entries,
                                const ReportContext& context, const TakePage& take);

// index.html: what there is, how it ended, and the newest entries.
[[nodiscard]] std::string index_document(const std::vector<const ledger::Entry*>& entries,
                                         const ReportContext& context);

// What the search of the index reads: search.js.
[[nodiscard]] std::string search_data(const std::vector<const ledger::Entry*>& entries);

// The index as text: a line an entry, newest first.
[[nodiscard]] std::string index_text(const std::vector<const ledger::Entry*>& entries);

}  // namespace reckon::cli
