// Holds what cites the ledger against it, and its verdicts against what a verdict must have.
// Pure and thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ledger/citation.h"
#include "ledger/fold.h"

namespace reckon::ledger {

struct LintReport {
  std::vector<std::string> errors;  // "path:line: what"
  std::vector<std::string> notes;   // cited and superseded, reopened or only reported
  size_t citations = 0;             // that name an entry
  size_t unmeasured = 0;            // that say so
  size_t verdicts = 0;              // that were looked at
};

// Errors of a citation: it names no entry; the entry is missing, ambiguous, overturned or has no
// verdict; `when` reaches beyond what the cited entries measured (each value must be one of theirs,
// a range must lie between the smallest and the largest), or names no field of a scope; a recipe's
// switch is not the entry's, or its value is the arm that lost.
void lint_citations(const Ledger& ledger, std::span<const Citation> citations, LintReport& report);

// Errors of a verdict that was measured here: what makes it reproducible and believable is missing.
// A missing mechanism is no error: the entry is unfinished, and says so.
void lint_verdicts(const Ledger& ledger, LintReport& report);

// What such an entry lacks: "no samples", "no fingerprints".
[[nodiscard]] std::vector<std::string> missing_of(const Entry& entry);

}  // namespace reckon::ledger
