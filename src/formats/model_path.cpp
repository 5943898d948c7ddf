#include "formats/model_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/program_path.h"
#include "base/text.h"
#include "formats/cache_folder.h"
#include "formats/synthetic.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShipped = "tiny";  // lies beside the program; the others are fetched

Result<std::string> resolve_named(const std::string& name) {
  if (name == kShipped) {
    const std::string program = program_path();
    std::string folder = shipped_folder(name, program);
    if (!folder.empty()) return folder;
    return failed(
        fmt::format("model '{}' ships with Reckon but is not here: expected a folder models/{} or "
                    "share/reckon/models/{} in one above {}",
                    name, name, name, program));
  }
  std::string path = fmt::format("{}/{}.gguf", model_cache_folder(), name);
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;
  return failed(
      fmt::format("model '{}' is not here yet: expected {}; scripts/get-model {} fetches it", name,
                  path, name));
}

}  // namespace

std::span<const std::string> named_models() {
  static const std::vector<std::string> names = {"gemma3", "smollm2", std::string(kShipped)};
  return names;
}

std::string shipped_folder(std::string_view name, std::string_view program) {
  std::error_code ignored;
  fs::path above = fs::path(program).parent_path();
  while (!above.empty()) {
    for (const char* models : {"models", "share/reckon/models"}) {
      const fs::path folder = above / models / name;
      if (fs::is_regular_file(folder / "config.json", ignored)) return folder.string();
    }
    if (!above.has_relative_path()) break;
    above = above.parent_path();
  }
  return "";
}

std::string model_cache_folder() {
  return cache_folder() + "/models";
}

Result<std::string> resolve_model(std::string_view typed) {
  const std::string name(typed);
  if (name.empty()) {
    return usage_error("no model named: expected a GGUF file, a Hugging Face folder or a name");
  }
  if (is_synthetic(name)) {
    TRY_ASSIGN(const SyntheticName synthetic, parse_synthetic(name));
    return synthetic.text();
  }
  std::error_code ignored;
  if (fs::exists(name, ignored)) return name;
  if (std::ranges::find(named_models(), name) != named_models().end()) return resolve_named(name);
  const std::string near = nearest(name, named_models());
  return usage_error(
      fmt::format("no model '{}': it is neither a file nor a folder nor a known "
                  "name ({}){}",
                  name, join(named_models(), ", "),
                  near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

}  // namespace reckon
