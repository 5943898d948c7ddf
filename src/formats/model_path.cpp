#include "formats/model_path.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "formats/synthetic.h"

namespace reckon {
namespace {

// The value of an environment variable that is an absolute path, or "".
std::string absolute_from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

std::span<const std::string> shipped_models() {
  static const std::vector<std::string> names = {"gemma3", "smollm2"};
  return names;
}

std::string model_cache_folder() {
  std::string cache = absolute_from_environment("XDG_CACHE_HOME");
  if (cache.empty()) cache = absolute_from_environment("HOME") + "/.cache";
  return cache + "/reckon/models";
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
  if (std::filesystem::exists(name, ignored)) return name;
  for (const std::string& shipped : shipped_models()) {
    if (name != shipped) continue;
    std::string path = fmt::format("{}/{}.gguf", model_cache_folder(), shipped);
    if (std::filesystem::exists(path, ignored)) return path;
    return failed(
        fmt::format("model '{}' is not here yet: expected {}; scripts/get-model {} "
                    "fetches it{}",
                    name, path, name, name == "smollm2" ? ", and so does scripts/demo" : ""));
  }
  const std::string near = nearest(name, shipped_models());
  return usage_error(
      fmt::format("no model '{}': it is neither a file nor a folder nor a shipped "
                  "name ({}){}",
                  name, join(shipped_models(), ", "),
                  near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

}  // namespace reckon
