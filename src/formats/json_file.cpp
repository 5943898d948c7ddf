#include "formats/json_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "formats/file_error.h"

namespace reckon {

using nlohmann::json;

Status parse_json_object(std::string_view path, std::string_view what, std::string_view text,
                         json& object, int unique_levels) {
  constexpr int kDeepest = 64;
  bool too_deep = false;
  std::vector<std::set<std::string>> names(static_cast<size_t>(unique_levels));
  std::string twice;
  // The parser lets a later name replace an earlier one and nests without a limit, which code that
  // walks the values recursively could not stand. Returning false drops a value.
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) too_deep = true;
    const bool watched = depth >= 0 && depth < unique_levels;
    if (watched && event == json::parse_event_t::object_start) names[depth].clear();
    if (depth >= 1 && depth <= unique_levels && event == json::parse_event_t::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!names[depth - 1].insert(name).second) twice = name;
    }
    return depth <= kDeepest;
  };
  try {
    object = json::parse(text, check);
  } catch (const json::parse_error& e) {
    return file_error(path, fmt::format("{} is not JSON (at byte {})", what, e.byte));
  } catch (const json::exception& e) {
    return file_error(path, fmt::format("{} is not usable JSON ({})", what, printable(e.what())));
  }
  if (too_deep) return file_error(path, fmt::format("{} nests deeper than {}", what, kDeepest));
  if (!object.is_object()) return file_error(path, fmt::format("{} is not a JSON object", what));
  if (!twice.empty()) {
    return file_error(path, fmt::format("{} has '{}' twice", what, printable(twice)));
  }
  return {};
}

}  // namespace reckon
