#include "formats/model_path.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "base/text.h"
#include "formats/cache_folder.h"
#include "formats/synthetic.h"

namespace reckon {
std::span<const std::string> shipped_models() {
  static const std::vector<std::string> names = {"gemma3", "smollm2"};
  return names;
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
