// The lines of a journal: JSON with a schema version and a checksum over everything else. Pure and
// thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experiment/journal.h"

namespace reckon::experiment {

struct JournalLine {
  std::optional<JournalPair> pair;    // or
  std::vector<ledger::Event> events;  // a commit
};

// Without the newline.
[[nodiscard]] std::string journal_line(const JournalPair& pair);
// Errors as ledger::event_line.
[[nodiscard]] Result<std::string> journal_line(std::span<const ledger::Event> events);

// kFailed: not JSON, another schema, a checksum that does not match, a field that is missing.
[[nodiscard]] Result<JournalLine> parse_journal_line(std::string_view line);

}  // namespace reckon::experiment
