#include "ledger/sqlite/event_writer.h"

#include <algorithm>

namespace reckon::ledger::sqlite {
namespace {

constexpr size_t kMostCachedBytes = 256 << 20;  // of lines

std::string round_of(const Event& event) {
  if (event.type != EventType::kMeasured) return "";
  const auto round = event.body.find("round");
  if (round == event.body.end() || !round->is_object()) return "";
  const auto id = round->find("id");
  return id != round->end() && id->is_string() ? id->get<std::string>() : "";
}

}  // namespace

Result<EventWriter> EventWriter::create(Database& database) {
  TRY_ASSIGN(Statement known, database.prepare("SELECT 1 FROM events WHERE sum = ?1"));
  TRY_ASSIGN(Statement insert,
             database.prepare("INSERT INTO events VALUES(NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
                              "?10)"));
  TRY_ASSIGN(Statement writer,
             database.prepare("INSERT OR REPLACE INTO writers VALUES(?1, ?2, ?3)"));
  EventWriter made(database, std::move(known), std::move(insert), std::move(writer));
  TRY(made.read_writers());
  return made;
}

Status EventWriter::read_writers() {
  TRY_ASSIGN(Statement rows, database_->prepare("SELECT name, reached, last_file FROM writers"));
  while (true) {
    TRY_ASSIGN(const bool more, rows.step());
    if (!more) return {};
    writers_[std::string(rows.text(0))] = {std::string(rows.text(1)), std::string(rows.text(2))};
  }
}

Result<Outcome> EventWriter::take(const SummedEvent& summed, const std::string& name, int64_t file,
                                  const jsonl::Line& line) {
  const auto& [event, sum] = summed;
  TRY_ASSIGN(const bool known, known_.bind(sum).step());
  if (known) return Outcome::kDone;
  Reached& writer = writers_[event.writer];
  if (writer.last_file > name) return Outcome::kMustRebuild;
  if (writer.time < event.time || writer.last_file != name) {
    writer = {std::max(writer.time, event.time), name};
    TRY(writer_.bind(event.writer, writer.time, name).run());
  }
  TRY(insert_
          .bind(file, static_cast<int64_t>(line.number), static_cast<int64_t>(line.offset),
                static_cast<int64_t>(line.text.size()), sum, event.entry,
                static_cast<int64_t>(creates_entry(event.type)), event.writer, writer.time,
                round_of(event))
          .run());
  touched_.insert(event.entry);
  if (cached_bytes_ < kMostCachedBytes) {
    cached_bytes_ += line.text.size();
    cache_.emplace(database_->last_row(), event);
  }
  return Outcome::kDone;
}

}  // namespace reckon::ledger::sqlite
