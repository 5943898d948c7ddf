#include "ledger/jsonl/jsonl_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "ledger/jsonl/files.h"
#include "ledger/record.h"

namespace reckon::ledger {
namespace {

namespace fs = std::filesystem;

struct Line {
  std::string_view text;
  std::string where;  // "folder/file:line"
  bool ended = true;  // false for a last line without its newline
};

std::vector<Line> lines_of(std::string_view content, const std::string& path) {
  std::vector<Line> lines;
  size_t number = 0;
  while (!content.empty()) {
    const size_t newline = content.find('\n');
    Line line{content.substr(0, newline), fmt::format("{}:{}", path, ++number),
              newline != std::string_view::npos};
    content.remove_prefix(line.ended ? newline + 1 : content.size());
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);  // a checkout with CRLF line ends
    if (!line.text.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

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
    report.events = in_time_order(std::move(walk.events));
    report.warnings = std::move(walk.errors);
    report.warnings.insert(report.warnings.end(), walk.torn.begin(), walk.torn.end());
    return report;
  }

  Result<VerifyReport> verify() const override {
    TRY_ASSIGN(Walk walk, this->walk());
    VerifyReport report;
    report.events = walk.events.size();
    report.errors = std::move(walk.errors);
    for (const Event& event : walk.events) {
      if (Status status = check_body(event); !status.ok()) {
        report.errors.push_back(fmt::format("{}: {}", location_, status.error().message));
      }
    }
    for (const auto* notes : {&walk.torn, &walk.repeats, &walk.set_aside}) {
      report.notes.insert(report.notes.end(), notes->begin(), notes->end());
    }
    return report;
  }

  const std::string& location() const override { return location_; }

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
      for (const Line& line : lines_of(content, path)) TRY(add(line, seen, walk));
    }
    return walk;
  }

  static Status add(const Line& line, std::set<std::string>& seen, Walk& walk) {
    Result<Event> event = parse_event_line(line.text, line.where);
    if (!event.ok() && !line.ended) {
      walk.torn.push_back(
          fmt::format("{}: a line that a crash cut short, left out; the next append sets it aside",
                      line.where));
    } else if (!event.ok()) {
      walk.errors.push_back(event.error().message);
    } else {
      TRY_ASSIGN(std::string sum, checksum(*event));
      if (seen.insert(std::move(sum)).second) {
        walk.events.push_back(std::move(event).value());
      } else {
        walk.repeats.push_back(line.where + ": repeats an event, counted once");
      }
    }
    return {};
  }

  // A writer's own order stands even where its clock went back, so its events sort by the latest
  // time that it had reached.
  static std::vector<Event> in_time_order(std::vector<Event> events) {
    std::map<std::string, std::string> latest;
    std::vector<std::tuple<std::string, std::string, size_t>> keys;
    for (size_t i = 0; i < events.size(); ++i) {
      std::string& reached = latest[events[i].writer];
      reached = std::max(reached, events[i].time);
      keys.emplace_back(reached, events[i].writer, i);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<Event> sorted;
    sorted.reserve(events.size());
    for (const auto& [time, writer, i] : keys) sorted.push_back(std::move(events[i]));
    return sorted;
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
