#include "experiment/command_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "experiment/json_fields.h"

namespace reckon::experiment {
namespace {

constexpr size_t kLongestName = 60;
constexpr size_t kLongestUnit = 20;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_name_character(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

// Calls back for what stands between placeholders, and for each of them.
void walk(std::string_view text, const std::function<void(std::string_view)>& on_text,
          const std::function<void(std::string_view)>& on_name) {
  size_t copied = 0;
  for (size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{', open)) {
    const bool escaped = text.substr(open).starts_with("{{");
    const size_t begin = open + (escaped ? 2 : 1);
    const size_t end = text.find_first_of("{}", begin);
    const bool closed =
        end != std::string_view::npos && text.substr(end).starts_with(escaped ? "}}" : "}");
    const bool of_shell = !escaped && open > 0 && text[open - 1] == '$';
    if (!closed || of_shell || !is_placeholder_name(text.substr(begin, end - begin))) {
      open = begin;
      continue;
    }
    on_text(text.substr(copied, open - copied));
    copied = end + (escaped ? 2 : 1);
    if (escaped) {
      on_text(text.substr(open + 1, end - open));
    } else {
      on_name(text.substr(begin, end - begin));
    }
    open = copied;
  }
  on_text(text.substr(copied));
}

std::string fill(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string result;
  walk(
      text, [&](std::string_view plain) { result += plain; },
      [&](std::string_view name) {
        const auto found = values.find(std::string(name));
        result += found != values.end() ? found->second : fmt::format("{{{}}}", name);
      });
  return result;
}

// The last name in a JSON path, as far as it can be a metric's.
std::string name_of_path(std::string_view path) {
  while (path.ends_with(']')) {
    const size_t bracket = path.rfind('[');
    if (bracket == std::string_view::npos) break;
    path = path.substr(0, bracket);
  }
  const size_t dot = path.rfind('.');
  std::string name(dot == std::string_view::npos ? path : path.substr(dot + 1));
  const bool usable = !name.empty() && name.size() <= kLongestName &&
                      std::all_of(name.begin(), name.end(), is_name_character);
  return usable ? name : "value";
}

Status check_words(const CommandMetric& metric) {
  if (metric.name.size() > kLongestName ||
      !std::all_of(metric.name.begin(), metric.name.end(),
                   [](char c) { return is_name_character(c) || c == '/'; })) {
    return usage_error(
        fmt::format("'{}' is no name of a metric: expected a word of letters, digits and . _ - /",
                    shorten(one_line(metric.name), kLongestName)));
  }
  if (metric.unit.size() > kLongestUnit || one_line(metric.unit) != metric.unit) {
    return usage_error(fmt::format("a unit is one line of at most {} bytes", kLongestUnit));
  }
  return {};
}

}  // namespace

Result<CommandMetric> make_command_metric(CommandMetric metric, const std::string& better,
                                          const std::string& fallback) {
  const bool is_time = metric.read == "wall" || metric.read == "cpu";
  const bool is_json = metric.read.starts_with("json:");
  if (!is_time && !is_json && !metric.read.starts_with("regex:")) {
    return usage_error(fmt::format(
        "'{}' says not how the metric is read: expected wall, cpu, json:$.PATH or regex:PATTERN",
        metric.read));
  }
  if (metric.read == "regex:") return usage_error("'regex:' has no pattern behind it");
  if (is_time && (better == "higher" || !metric.unit.empty())) {
    return usage_error(fmt::format("'{}' is a time in ms, and lower is better", metric.read));
  }
  if (metric.name.empty()) {
    metric.name = is_time   ? metric.read + "_ms"
                  : is_json ? name_of_path(metric.read.substr(5))
                            : "value";
  }
  if (is_time) metric.unit = "ms";
  TRY(check_words(metric));
  const std::string direction = is_time ? "lower" : better.empty() ? fallback : better;
  if (direction != "higher" && direction != "lower") {
    return usage_error(direction.empty() ? "'better' is missing: expected higher or lower"
                                         : fmt::format("'{}' is not higher or lower", direction));
  }
  metric.higher_is_better = direction == "higher";
  return metric;
}

bool is_placeholder_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

std::vector<std::string> placeholders(const CommandWorkload& workload) {
  std::vector<std::string> names;
  const auto collect = [&](const std::string& text) {
    walk(
        text, [](std::string_view) {}, [&](std::string_view name) { names.emplace_back(name); });
  };
  for (const std::string& word : workload.command) collect(word);
  for (const auto& [name, value] : workload.env) collect(value);
  collect(workload.dispatch_file);
  for (const std::string& input : workload.inputs.value_or(std::vector<std::string>())) {
    collect(input);
  }
  return names;
}

CommandWorkload filled(const CommandWorkload& workload,
                       const std::map<std::string, std::string>& values) {
  CommandWorkload result = workload;
  for (std::string& word : result.command) word = fill(word, values);
  for (auto& [name, value] : result.env) value = fill(value, values);
  result.dispatch_file = fill(result.dispatch_file, values);
  if (result.inputs) {
    for (std::string& input : *result.inputs) input = fill(input, values);
  }
  return result;
}

nlohmann::json encode_command(const CommandWorkload& workload) {
  nlohmann::json object{{"command", workload.command},
                        {"shell", workload.shell},
                        {"env", workload.env},
                        {"metric", workload.metric.name},
                        {"read", workload.metric.read},
                        {"unit", workload.metric.unit},
                        {"higher_is_better", workload.metric.higher_is_better},
                        {"dispatch_file", workload.dispatch_file},
                        {"tags", workload.tags},
                        {"timeout_seconds", workload.timeout_seconds}};
  if (workload.inputs) object["inputs"] = *workload.inputs;
  return object;
}

Result<CommandWorkload> decode_command(const nlohmann::json& object, const std::string& what) {
  CommandWorkload workload;
  JsonFields fields(object, what);
  fields.read("command", workload.command);
  fields.read("shell", workload.shell);
  fields.read("env", workload.env);
  fields.read("metric", workload.metric.name);
  fields.read("read", workload.metric.read);
  fields.read("unit", workload.metric.unit);
  fields.read("higher_is_better", workload.metric.higher_is_better);
  fields.read("dispatch_file", workload.dispatch_file);
  fields.read("tags", workload.tags);
  fields.read("timeout_seconds", workload.timeout_seconds);
  if (object.is_object() && object.contains("inputs")) {
    fields.read("inputs", workload.inputs.emplace());
  }
  TRY(fields.status());
  if (workload.command.empty()) return failed(what + ": 'command' is empty");
  return workload;
}

}  // namespace reckon::experiment
