#include "experiment/run_record.h"

#include "base/hash.h"
#include "base/text.h"
#include "experiment/durable_file.h"

namespace reckon::experiment {
namespace {

// "KEY ENTRY CHECKSUM"
std::string record_line(const std::string& key, const std::string& entry) {
  const std::string fields = key + " " + entry;
  return fields + " " + hash_hex(fields);
}

}  // namespace

Result<RunRecord> RunRecord::open(const std::string& path) {
  RunRecord record(path);
  TRY_ASSIGN(const std::string text, read_if_present(path));
  bool damaged = !text.empty() && text.back() != '\n';
  std::string kept;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> parts = split(line, ' ');
    if (parts.size() == 3 && line == record_line(parts[0], parts[1])) {
      record.entries_[parts[0]] = parts[1];
      kept += line + '\n';
    } else {
      damaged = true;
    }
  }
  if (damaged) TRY(replace_file(path, kept));
  return record;
}

std::optional<std::string> RunRecord::entry_of(const std::string& key) const {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

Status RunRecord::concluded(const std::string& key, const std::string& entry) {
  if (entry_of(key) == entry) return {};
  TRY(append_line(path_, record_line(key, entry)));
  entries_[key] = entry;
  return {};
}

Status RunRecord::finish() {
  entries_.clear();
  return remove_file(path_);
}

}  // namespace reckon::experiment
