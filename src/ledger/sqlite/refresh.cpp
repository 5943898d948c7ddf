#include "ledger/sqlite/refresh.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ledger/jsonl/files.h"
#include "ledger/sqlite/entry_rows.h"
#include "ledger/sqlite/event_rows.h"
#include "ledger/sqlite/event_writer.h"
#include "ledger/sqlite/schema.h"

namespace reckon::ledger::sqlite {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::system_clock;

// Filesystems keep times as coarse as a second or two; a change within that of the last look could
// go unseen.
constexpr std::chrono::seconds kSettled{3};

struct KnownFile {
  int64_t id = 0;
  std::string stamp;
  size_t covered = 0;
  std::string hash;
  size_t lines = 0;
  bool ended = true;
};

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

struct Stamp {
  std::string text;
  bool settled = false;
};

Result<Stamp> stamp_of(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return failed(path.string() + ": cannot examine");
  const int64_t changed = std::max(nanoseconds(info.st_mtim), nanoseconds(info.st_ctim));
  const auto now = Clock::now().time_since_epoch();
  const auto age = now - std::chrono::nanoseconds(changed);
  return Stamp{fmt::format("{} {} {} {}", info.st_ino, info.st_size, nanoseconds(info.st_mtim),
                           nanoseconds(info.st_ctim)),
               age > kSettled};
}

class Refresher {
 public:
  Refresher(Database& database, const fs::path& folder) : db_(database), folder_(folder) {}

  Status run() {
    TRY_ASSIGN(const bool current, is_current());
    if (current) return {};
    TRY(db_.run("BEGIN IMMEDIATE"));
    Status status = update();
    if (status.ok()) status = db_.run("COMMIT");
    if (!status.ok()) TRY(db_.run("ROLLBACK"));
    return status;
  }

 private:
  // Whether no file changed since the last look.
  Result<bool> is_current() {
    TRY_ASSIGN(const bool has_tables, this->has_tables());
    if (!has_tables) return false;
    TRY(find_files());
    if (known_.size() != names_.size()) return false;
    for (const std::string& name : names_) {
      const auto known = known_.find(name);
      TRY_ASSIGN(const Stamp stamp, stamp_of(folder_ / name));
      if (known == known_.end() || known->second.stamp != stamp.text) return false;
    }
    return true;
  }

  Result<bool> has_tables() {
    TRY_ASSIGN(Statement version, db_.prepare("PRAGMA user_version"));
    TRY(version.step());
    return version.integer(0) == kIndexVersion;
  }

  Status find_files() {
    names_.clear();
    TRY_ASSIGN(const std::vector<std::string> all, jsonl::list_files(folder_));
    std::copy_if(all.begin(), all.end(), std::back_inserter(names_), jsonl::is_ledger_file_name);
    known_.clear();
    TRY_ASSIGN(Statement rows,
               db_.prepare("SELECT name, id, stamp, covered, hash, lines, ended FROM files"));
    while (true) {
      TRY_ASSIGN(const bool more, rows.step());
      if (!more) return {};
      known_[std::string(rows.text(0))] = {rows.integer(1),
                                           std::string(rows.text(2)),
                                           static_cast<size_t>(rows.integer(3)),
                                           std::string(rows.text(4)),
                                           static_cast<size_t>(rows.integer(5)),
                                           rows.integer(6) != 0};
    }
  }

  Status update() {
    TRY_ASSIGN(const bool has_tables, this->has_tables());
    if (!has_tables) TRY(make_tables());
    TRY(find_files());  // another process may have been faster
    TRY_ASSIGN(Outcome outcome, take_what_is_new());
    if (outcome == Outcome::kMustRebuild) {
      TRY(make_tables());
      TRY(find_files());
      TRY_ASSIGN(outcome, take_what_is_new());
      if (outcome != Outcome::kDone) return failed("the ledger's files change while they are read");
    }
    return fold_touched();
  }

  Status make_tables() {
    events_.reset();
    TRY(db_.run(kDropTables));
    TRY(db_.run(kCreateTables));
    return db_.run(fmt::format("PRAGMA user_version = {}", kIndexVersion).c_str());
  }

  Result<Outcome> take_what_is_new() {
    TRY_ASSIGN(events_, EventWriter::create(db_));
    for (const auto& [name, known] : known_) {
      if (!std::binary_search(names_.begin(), names_.end(), name)) return Outcome::kMustRebuild;
    }
    for (const std::string& name : names_) {
      TRY_ASSIGN(const Outcome outcome, take_file(name));
      if (outcome == Outcome::kMustRebuild) return outcome;
    }
    return Outcome::kDone;
  }

  Result<Outcome> take_file(const std::string& name) {
    TRY_ASSIGN(const Stamp stamp, stamp_of(folder_ / name));
    const auto found = known_.find(name);
    KnownFile file = found == known_.end() ? KnownFile() : found->second;
    if (found == known_.end()) {
      TRY_ASSIGN(Statement insert,
                 db_.prepare("INSERT INTO files VALUES(NULL, ?1, '', 0, '', 0, 1)"));
      TRY(insert.bind(name).run());
      file.id = db_.last_row();
      file.hash = hash_hex("");
    } else if (file.stamp == stamp.text) {
      return Outcome::kDone;
    }
    TRY_ASSIGN(const std::string content, jsonl::read_file(folder_ / name));
    const std::string_view view = content;
    const bool grew = content.size() > file.covered;
    if (content.size() < file.covered || hash_hex(view.substr(0, file.covered)) != file.hash ||
        (grew && !file.ended)) {
      return Outcome::kMustRebuild;
    }
    TRY_ASSIGN(const Outcome outcome, take_lines(name, view, file));
    if (outcome == Outcome::kMustRebuild) return outcome;
    TRY_ASSIGN(Statement update,
               db_.prepare("UPDATE files SET stamp = ?2, covered = ?3, hash = ?4, lines = ?5, "
                           "ended = ?6 WHERE id = ?1"));
    TRY(update
            .bind(file.id, stamp.settled ? stamp.text : "", static_cast<int64_t>(file.covered),
                  hash_hex(view.substr(0, file.covered)), static_cast<int64_t>(file.lines),
                  static_cast<int64_t>(file.ended))
            .run());
    return Outcome::kDone;
  }

  // Takes the lines after file.covered, and says in `file` how far it came.
  Result<Outcome> take_lines(const std::string& name, std::string_view content, KnownFile& file) {
    TRY_ASSIGN(Statement forget, db_.prepare("DELETE FROM problems WHERE file = ?1 AND torn = 1"));
    TRY(forget.bind(file.id).run());
    const std::string path = (folder_ / name).string();
    size_t covered = content.size();
    for (const jsonl::Line& line :
         jsonl::split_lines(content.substr(file.covered), file.covered, file.lines + 1)) {
      const std::string where = jsonl::line_name(path, line);
      const Result<SummedEvent> event = parse_summed_line(line.text, where);
      if (event.ok()) {
        TRY_ASSIGN(const Outcome outcome, events_->take(*event, name, file.id, line));
        if (outcome == Outcome::kMustRebuild) return outcome;
        file.ended = line.ended;
      } else {
        if (!line.ended) covered = line.offset;
        TRY(add_problem(file.id, !line.ended,
                        line.ended ? event.error().message : jsonl::torn_text(where)));
      }
    }
    const std::string_view taken = content.substr(file.covered, covered - file.covered);
    file.lines += static_cast<size_t>(std::count(taken.begin(), taken.end(), '\n'));
    file.covered = covered;
    return Outcome::kDone;
  }

  Status add_problem(int64_t file, bool torn, const std::string& text) {
    TRY_ASSIGN(Statement insert, db_.prepare("INSERT INTO problems VALUES(?1, ?2, ?3)"));
    return insert.bind(file, static_cast<int64_t>(torn), text).run();
  }

  // Folds what got events, with all that it must be folded with.
  Status fold_touched() {
    TRY_ASSIGN(EventRows rows, EventRows::create(db_, folder_, &events_->cache()));
    TRY_ASSIGN(EntryWriter writer, EntryWriter::create(db_));
    std::set<std::string> done;
    for (const std::string& touched : events_->touched()) {
      if (done.contains(touched)) continue;
      std::set<std::string> group{touched};
      TRY(rows.complete(group));
      TRY_ASSIGN(const std::vector<Event> events, rows.read(group));
      const Ledger ledger = fold(events);
      for (const std::string& id : group) {
        const auto place = rows.places().find(id);
        TRY(writer.replace(id, ledger.find(id), place == rows.places().end() ? "" : place->second));
      }
      for (const std::string& warning : ledger.warnings) TRY(writer.add_warning(warning));
      done.merge(group);
    }
    return {};
  }

  Database& db_;
  const fs::path& folder_;
  std::vector<std::string> names_;  // of the ledger's files, sorted
  std::map<std::string, KnownFile> known_;
  std::optional<EventWriter> events_;
};

}  // namespace

Status refresh(Database& database, const fs::path& folder) {
  return Refresher(database, folder).run();
}

}  // namespace reckon::ledger::sqlite
