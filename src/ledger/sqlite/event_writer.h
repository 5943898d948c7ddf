// Rows of events as they are taken from files, and the entries that must be folded anew for them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/result.h"
#include "ledger/event.h"
#include "ledger/jsonl/files.h"
#include "ledger/sqlite/database.h"
#include "ledger/sqlite/event_rows.h"

namespace reckon::ledger::sqlite {

enum class Outcome { kDone, kMustRebuild };

// Not thread-safe. Outlived by the database, whose tables exist.
class EventWriter {
 public:
  [[nodiscard]] static Result<EventWriter> create(Database& database);

  // Adds the event at `line` of file number `file`, called `name`; nothing where it is known
  // already. Must rebuild where its writer has a later file: then its place is among rows that
  // were ordered without it.
  [[nodiscard]] Result<Outcome> take(const SummedEvent& summed, const std::string& name,
                                     int64_t file, const jsonl::Line& line);

  [[nodiscard]] const std::set<std::string>& touched() const { return touched_; }
  // The events taken, up to a limit of memory.
  [[nodiscard]] const EventCache& cache() const { return cache_; }

 private:
  struct Reached {
    std::string time;  // the latest of the writer
    std::string last_file;
  };

  EventWriter(Database& database, Statement known, Statement insert, Statement writer)
      : database_(&database),
        known_(std::move(known)),
        insert_(std::move(insert)),
        writer_(std::move(writer)) {}
  [[nodiscard]] Status read_writers();

  Database* database_;
  Statement known_;
  Statement insert_;
  Statement writer_;
  std::map<std::string, Reached> writers_;
  std::set<std::string> touched_;
  EventCache cache_;
  size_t cached_bytes_ = 0;
};

}  // namespace reckon::ledger::sqlite
