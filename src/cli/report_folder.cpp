#include "cli/report_folder.h"

#include <fmt/format.h>

#include <system_error>
#include <vector>

#include "formats/new_file.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarker = ".reckon-report";
constexpr const char* kSubfolders[] = {"entries", "lists"};

Error path_error(const fs::path& path, const std::error_code& code) {
  return failed(fmt::format("{}: {}", path.string(), code.message()));
}

}  // namespace

Result<ReportFolder> ReportFolder::open(const std::string& path, Occupied occupied) {
  const fs::path folder(path);
  std::error_code code;
  const fs::file_status status = fs::status(folder, code);
  if (fs::exists(status) && !fs::is_directory(status)) {
    return usage_error(fmt::format("{} is not a folder; expected a new or empty one", path));
  }
  bool ours = true;
  if (fs::exists(status)) {
    const bool empty = fs::is_empty(folder, code);
    if (code) return path_error(folder, code);
    ours = empty || fs::exists(folder / kMarker, code);
    if (!ours && occupied == Occupied::kRefuse) {
      return usage_error(fmt::format(
          "{} holds files that no report wrote; expected a new or empty folder, or --force", path));
    }
  }
  ReportFolder report(folder, ours);
  for (const char* name : kSubfolders) {
    fs::create_directories(folder / name, code);
    if (code) return path_error(folder / name, code);
  }
  TRY(report.mark("incomplete"));
  return report;
}

Status ReportFolder::mark(std::string_view state) const {
  return replace_file(
      (path_ / kMarker).string(),
      fmt::format("{}: a report of a Reckon ledger; made anew by the next one\n", state));
}

Status ReportFolder::write(const std::string& file, std::string_view text) {
  TRY(replace_file((path_ / file).string(), text));
  written_.insert(file);
  return {};
}

Result<size_t> ReportFolder::finish() {
  size_t removed = 0;
  for (const char* name : kSubfolders) {
    if (!ours_) break;
    std::vector<fs::path> old;
    std::error_code code;
    for (fs::directory_iterator at(path_ / name, code), end; !code && at != end;
         at.increment(code)) {
      const std::string file = fmt::format("{}/{}", name, at->path().filename().string());
      if (at->is_regular_file() && written_.count(file) == 0) old.push_back(at->path());
    }
    if (code) return path_error(path_ / name, code);
    for (const fs::path& file : old) {
      if (fs::remove(file, code)) ++removed;
      if (code) return path_error(file, code);
    }
  }
  TRY(mark("complete"));
  return removed;
}

}  // namespace reckon::cli
