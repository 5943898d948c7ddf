// Events as the index finds them in their files: groups of entries that must be folded together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ledger/event.h"
#include "ledger/fold.h"
#include "ledger/sqlite/database.h"

namespace reckon::ledger::sqlite {

using EventCache = std::map<int64_t, Event>;  // by row of `events`

// Not thread-safe. Outlived by the database, and by the cache where there is one.
class EventRows {
 public:
  [[nodiscard]] static Result<EventRows> create(Database& database, std::filesystem::path folder,
                                                const EventCache* cache = nullptr);

  // Adds the entries whose events name a round that an entry of the set names, too: the fold counts
  // a round once, so these entries depend on each other.
  [[nodiscard]] Status complete(std::set<std::string>& entries);

  // The events of the entries in the order that stores read in, from their lines. Error: a line is
  // no longer the event that was indexed.
  [[nodiscard]] Result<std::vector<Event>> read(const std::set<std::string>& entries);

  // Where the last read found the event that creates the entry: a text that sorts as the fold does.
  [[nodiscard]] const std::map<std::string, std::string>& places() const { return places_; }

 private:
  struct Row {
    std::string place;  // reached, writer, file and line: the order of reading
    std::string file;
    std::string sum;
    int64_t id = 0;
    int64_t offset = 0;
    int64_t length = 0;
  };

  EventRows(Statement rows, Statement sharing, std::filesystem::path folder,
            const EventCache* cache)
      : rows_(std::move(rows)),
        sharing_(std::move(sharing)),
        folder_(std::move(folder)),
        cache_(cache) {}
  [[nodiscard]] Status add_rows(const std::string& entry, std::vector<Row>& rows);
  [[nodiscard]] Result<Event> event_of(const Row& row) const;

  Statement rows_;
  Statement sharing_;
  std::filesystem::path folder_;
  const EventCache* cache_;
  std::map<std::string, std::string> places_;
};

}  // namespace reckon::ledger::sqlite
