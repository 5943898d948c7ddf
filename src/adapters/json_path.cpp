#include "adapters/json_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace reckon::adapters {
namespace {

using nlohmann::json;

constexpr size_t kNamesShown = 12;

bool is_name_character(char c) {
  return c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// What a document has where the path stops: "an object with a, b", "a text".
std::string what_is_there(const json& value) {
  if (value.is_object()) {
    std::vector<std::string> names;
    for (const auto& [name, member] : value.items()) {
      if (names.size() < kNamesShown) names.push_back(shorten(one_line(name), 40));
    }
    const bool more = value.size() > names.size();
    return fmt::format("an object with {}{}", names.empty() ? "nothing" : join(names, ", "),
                       more ? ", …" : "");
  }
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  return value.is_string() ? "a text" : value.is_null() ? "null" : value.type_name();
}

// "[2]", "[-1]", "[\"a name\"]" at the beginning of `text`, which loses it. False: none of them.
bool take_brackets(std::string_view& text, std::variant<std::string, int64_t>& step) {
  const bool quoted = text.starts_with("[\"");
  const size_t close = text.find(quoted ? "\"]" : "]", quoted ? 2 : 1);
  if (close == std::string_view::npos) return false;
  if (quoted) {
    step = std::string(text.substr(2, close - 2));
    text.remove_prefix(close + 2);
    return true;
  }
  int64_t index = 0;
  const char* end = text.data() + close;
  const auto [stop, failure] = std::from_chars(text.data() + 1, end, index);
  if (failure != std::errc() || stop != end) return false;
  step = index;
  text.remove_prefix(close + 1);
  return true;
}

}  // namespace

Result<JsonPath> JsonPath::parse(std::string_view text) {
  JsonPath path;
  path.text_ = std::string(text);
  std::string_view rest = text;
  const auto wrong = [&] {
    return usage_error(
        fmt::format("JSON path '{}' makes no sense from '{}' on: expected $.name, "
                    "$[2], $[-1] or $[\"a name\"], one after the other",
                    one_line(text), one_line(rest)));
  };
  if (!rest.starts_with('$')) return wrong();
  rest.remove_prefix(1);
  while (!rest.empty()) {
    if (rest.front() == '[') {
      if (!take_brackets(rest, path.steps_.emplace_back())) return wrong();
      continue;
    }
    const auto* const begin = rest.begin() + 1;
    const auto* const end = std::find_if_not(begin, rest.end(), is_name_character);
    if (rest.front() != '.' || end == begin) return wrong();
    path.steps_.emplace_back(std::string(begin, end));
    rest.remove_prefix(static_cast<size_t>(end - rest.begin()));
  }
  return path;
}

Result<double> JsonPath::number(const json& document) const {
  const json* at = &document;
  std::string reached = "$";
  for (const Step& step : steps_) {
    const json* next = nullptr;
    if (const auto* name = std::get_if<std::string>(&step)) {
      const auto found = at->find(*name);
      if (at->is_object() && found != at->end()) next = &*found;
      if (next != nullptr) reached += "." + *name;
    } else if (at->is_array()) {
      const int64_t index = std::get<int64_t>(step);
      const auto size = static_cast<int64_t>(at->size());
      const int64_t place = index < 0 ? size + index : index;
      if (place >= 0 && place < size) next = &(*at)[static_cast<size_t>(place)];
      if (next != nullptr) reached += fmt::format("[{}]", index);
    }
    if (next == nullptr) {
      return failed(
          fmt::format("no {}: {} is {}", one_line(text_), one_line(reached), what_is_there(*at)));
    }
    at = next;
  }
  if (at->is_number()) return at->get<double>();
  return failed(fmt::format("{} is no number but {}", one_line(text_), what_is_there(*at)));
}

}  // namespace reckon::adapters
