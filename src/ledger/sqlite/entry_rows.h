// The rows of entries: what the fold of their events says, for lists and for finding.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ledger/fold.h"
#include "ledger/sqlite/database.h"
#include "ledger/summary.h"

namespace reckon::ledger::sqlite {

// Columns of `entries` that hold a Summary, in the order that read_summary expects.
inline constexpr const char* kSummaryColumns =
    "id, kind, verdict, effect, metric, switch, base, arm, model, family, device, vendor, isa, "
    "idea, "
    "rounds, imported, status, superseded_by, lever_entry, created, updated, writer";
[[nodiscard]] Summary read_summary(const Statement& row);

// Not thread-safe. Outlived by the database.
class EntryWriter {
 public:
  [[nodiscard]] static Result<EntryWriter> create(Database& database);

  // Takes out what was there of `id`, then puts in what the fold has: `entry`, or nothing where no
  // event creates it.
  [[nodiscard]] Status replace(const std::string& id, const Entry* entry, const std::string& place);
  // A warning of fold(), which begins with an entry's id.
  [[nodiscard]] Status add_warning(const std::string& text);

 private:
  EntryWriter(Statement insert, Statement condition, Statement warning)
      : insert_(std::move(insert)),
        condition_(std::move(condition)),
        warning_(std::move(warning)) {}
  [[nodiscard]] Status remove(const std::string& id);

  Statement insert_;
  Statement condition_;
  Statement warning_;
  std::vector<Statement> removals_;
};

}  // namespace reckon::ledger::sqlite
