#include "ledger/sqlite/event_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "ledger/jsonl/files.h"

namespace reckon::ledger::sqlite {
namespace {

constexpr const char* kRows = R"(
  SELECT e.id, e.reached, e.writer, f.name, e.line, e.offset, e.length, e.sum, e.creates
  FROM events e JOIN files f ON f.id = e.file WHERE e.entry = ?1)";
constexpr const char* kSharing = R"(
  SELECT DISTINCT o.entry FROM events e JOIN events o ON o.round = e.round
  WHERE e.entry = ?1 AND e.round != '' AND o.round != '' AND o.entry != ?1)";

}  // namespace

Result<EventRows> EventRows::create(Database& database, std::filesystem::path folder,
                                    const EventCache* cache) {
  TRY_ASSIGN(Statement rows, database.prepare(kRows));
  TRY_ASSIGN(Statement sharing, database.prepare(kSharing));
  return EventRows(std::move(rows), std::move(sharing), std::move(folder), cache);
}

Status EventRows::complete(std::set<std::string>& entries) {
  std::vector<std::string> open(entries.begin(), entries.end());
  while (!open.empty()) {
    sharing_.bind(open.back());
    open.pop_back();
    while (true) {
      TRY_ASSIGN(const bool more, sharing_.step());
      if (!more) break;
      const auto [at, is_new] = entries.emplace(sharing_.text(0));
      if (is_new) open.push_back(*at);
    }
  }
  return {};
}

Status EventRows::add_rows(const std::string& entry, std::vector<Row>& rows) {
  rows_.bind(entry);
  while (true) {
    TRY_ASSIGN(const bool more, rows_.step());
    if (!more) return {};
    Row row;
    row.id = rows_.integer(0);
    row.file = rows_.text(3);
    row.place =
        fmt::format("{} {} {} {:012}", rows_.text(1), rows_.text(2), row.file, rows_.integer(4));
    row.offset = rows_.integer(5);
    row.length = rows_.integer(6);
    row.sum = rows_.text(7);
    if (rows_.integer(8) != 0) places_[entry] = row.place;
    rows.push_back(std::move(row));
  }
}

Result<Event> EventRows::event_of(const Row& row) const {
  if (cache_ != nullptr) {
    if (const auto cached = cache_->find(row.id); cached != cache_->end()) return cached->second;
  }
  const std::filesystem::path path = folder_ / row.file;
  TRY_ASSIGN(const std::string line, jsonl::read_range(path, static_cast<size_t>(row.offset),
                                                       static_cast<size_t>(row.length)));
  TRY_ASSIGN(SummedEvent found, parse_summed_line(line, path.string()));
  if (found.sum != row.sum) return failed(path.string() + ": another event than the index has");
  return std::move(found.event);
}

Result<std::vector<Event>> EventRows::read(const std::set<std::string>& entries) {
  places_.clear();
  std::vector<Row> rows;
  for (const std::string& entry : entries) TRY(add_rows(entry, rows));
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.place < b.place; });
  std::vector<Event> events;
  events.reserve(rows.size());
  for (const Row& row : rows) {
    TRY_ASSIGN(Event event, event_of(row));
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace reckon::ledger::sqlite
