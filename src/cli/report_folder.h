// The folder that a report is written to. A marker file says that a report made it; each file
// appears whole or not at all; index.html comes last, so that a new folder without one is a run
// that did not end. Errors name the path.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/result.h"

namespace reckon::cli {

enum class Occupied { kRefuse, kAccept };  // a folder with files that no report wrote

class ReportFolder {
 public:
  // Creates the folder, or takes an empty one or one that a report made. Usage error: it is not a
  // folder, or holds other files (unless kAccept: those are left alone).
  [[nodiscard]] static Result<ReportFolder> open(const std::string& path, Occupied occupied);

  // Creates or replaces the file; `file` as the pages name it: "entries/rk-….html".
  [[nodiscard]] Status write(const std::string& file, std::string_view text);

  // Removes the pages of an earlier report that this one did not write, and marks the folder as
  // whole. Returns how many were removed.
  [[nodiscard]] Result<size_t> finish();

  [[nodiscard]] size_t files() const { return written_.size(); }

 private:
  ReportFolder(std::filesystem::path path, bool ours) : path_(std::move(path)), ours_(ours) {}
  [[nodiscard]] Status mark(std::string_view state) const;

  std::filesystem::path path_;
  bool ours_;  // everything in its sub-folders is from a report
  std::unordered_set<std::string> written_;
};

}  // namespace reckon::cli
