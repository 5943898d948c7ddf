#include "ledger/jsonl/jsonl_store.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "ledger/jsonl/files.h"
#include "ledger/read_order.h"
#include "ledger/record.h"

namespace reckon::ledger {
namespace {

namespace fs = std::filesystem;

// What a walk over all files found.
struct Walk {
  std::vector<Event> events;        // in file and line order, each once
  std::vector<std::string> errors;  // lines that are no event
  std::vector<std::string> torn;    // last lines without an end
  std::vector<std::string> repeats;
  std::vector<std::string> set_aside;  // names of torn files
};

class JsonlStore : public Store {
 public:
  explicit JsonlStore(std::string_view folder) : location_(folder), folder_(folder) {}

  Result<AppendReport> append(std::span<const Event> events) override {
    AppendReport report;
    std::map<std::string, std::string> text_of_file;
    for (const Event& event : events) {
      TRY(check_body(event));
      TRY_ASSIGN(const std::string line, event_line(event));
      text_of_file[jsonl::ledger_file_name(event.writer, event.time)] += line + "\n";
    }
    if (events.empty()) return report;
    TRY_ASSIGN(const jsonl::File lock, jsonl::lock_for_append(folder_));
    for (const auto& [name, text] : text_of_file) {
      TRY_ASSIGN(const auto warning, jsonl::append_lines(folder_ / name, text));
      if (warning) report.warnings.push_back(*warning);
    }
    report.appended = events.size();
    return report;
  }

  Result<ReadReport> read() const override {
    TRY_ASSIGN(Walk walk, this->walk());
    ReadReport report;
    report.events = in_read_order(std::move(walk.events));
    report.warnings = std::move(walk.errors);
    report.warnings.insert(report.warnings.end(), walk.torn.begin(), walk.torn.end());
    return report;
  }

  Result<VerifyReport> verify() const override {
    TRY_ASSIGN(Walk walk, this->walk());
    VerifyReport report;
    report.events = walk.events.size();
    report.errors = std::move(walk.errors);
    const std::vector<std::string> bodies = body_errors(walk.events, location_);
    report.errors.insert(report.errors.end(), bodies.begin(), bodies.end());
    for (const auto* notes : {&walk.torn, &walk.repeats, &walk.set_aside}) {
      report.notes.insert(report.notes.end(), notes->begin(), notes->end());
    }
    return report;
  }

  const std::string& location() const override { return location_; }
  Result<fs::path> local_folder() const override { return folder_; }
  fs::path indexed_folder() const override { return folder_; }

 private:
  Result<Walk> walk() const {
    const jsonl::File lock = jsonl::lock_for_read(folder_);
    TRY_ASSIGN(const std::vector<std::string> names, jsonl::list_files(folder_));
    Walk walk;
    std::set<std::string> seen;
    for (const std::string& name : names) {
      const std::string path = (folder_ / name).string();
      if (jsonl::is_torn_file_name(name)) {
        walk.set_aside.push_back(path + ": a line that a crash cut short, set aside");
      }
      if (!jsonl::is_ledger_file_name(name)) continue;
      TRY_ASSIGN(const std::string content, jsonl::read_file(path));
      for (const jsonl::Line& line : jsonl::split_lines(content)) add(path, line, seen, walk);
    }
    return walk;
  }

  static void add(const std::string& path, const jsonl::Line& line, std::set<std::string>& seen,
                  Walk& walk) {
    const std::string where = jsonl::line_name(path, line);
    Result<SummedEvent> event = parse_summed_line(line.text, where);
    if (!event.ok() && !line.ended) {
      walk.torn.push_back(jsonl::torn_text(where));
    } else if (!event.ok()) {
      walk.errors.push_back(event.error().message);
    } else if (seen.insert(event->sum).second) {
      walk.events.push_back(std::move(event->event));
    } else {
      walk.repeats.push_back(where + ": repeats an event, counted once");
    }
  }

  std::string location_;
  fs::path folder_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_jsonl_store(std::string_view folder) {
  std::error_code ignored;
  const fs::path path(folder);
  if (fs::exists(path, ignored) && !fs::is_directory(path, ignored)) {
    return usage_error(fmt::format("{}: not a folder: a ledger is a folder of files", folder));
  }
  return std::unique_ptr<Store>(std::make_unique<JsonlStore>(folder));
}

}  // namespace reckon::ledger
