#include "cli/ledger_cited.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "cli/output.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSources{".c",  ".cc",    ".cpp", ".cu", ".cuh", ".h",  ".hpp",  ".inc", ".m",
                              ".mm", ".metal", ".py",  ".rs", ".go",  ".sh", ".yaml", ".yml"};

bool is_yaml(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

// Also where the rules' folder itself is the path that was given.
bool holds_rules(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return is_yaml(path) && std::any_of(whole.begin(), whole.end(), [](const fs::path& part) {
           return part == "rules" || part == "recipes";
         });
}

bool is_source(const fs::path& path) {
  const std::string extension = path.extension().string();
  if (path.stem().string().ends_with("_test")) return false;
  return std::find(kSources.begin(), kSources.end(), extension) != kSources.end();
}

Result<std::vector<fs::path>> files_below(const std::string& root) {
  std::error_code error;
  if (!fs::is_directory(root, error)) return std::vector<fs::path>{root};
  std::vector<fs::path> files;
  fs::recursive_directory_iterator it(root, error);
  for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored) && is_source(it->path())) files.push_back(it->path());
  }
  if (error) return failed(fmt::format("{}: cannot list: {}", root, error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::vector<ledger::Citation>> citations_of(const fs::path& path) {
  TRY_ASSIGN(const std::string text, read_text(path.string()));
  if (holds_rules(path)) return ledger::citations_in_rules(text, path.string());
  return ledger::citations_in_comments(text, path.string());
}

}  // namespace

Result<std::vector<ledger::Citation>> read_citations(const std::vector<std::string>& paths) {
  std::vector<std::string> roots = paths;
  if (roots.empty()) {
    for (const char* usual : {"rules", "recipes", "src"}) {
      std::error_code ignored;
      if (fs::is_directory(usual, ignored)) roots.emplace_back(usual);
    }
  }
  if (roots.empty()) return usage_error("no rules, recipes or src here: say what to look at");
  std::vector<ledger::Citation> found;
  for (const std::string& root : roots) {
    TRY_ASSIGN(const std::vector<fs::path> files, files_below(root));
    for (const fs::path& path : files) {
      TRY_ASSIGN(const std::vector<ledger::Citation> more, citations_of(path));
      found.insert(found.end(), more.begin(), more.end());
    }
  }
  return found;
}

}  // namespace reckon::cli
