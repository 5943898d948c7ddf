#include "adapters/metric_reader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace reckon::adapters {
namespace {

using nlohmann::json;

constexpr std::string_view kJson = "json:";
constexpr std::string_view kRegex = "regex:";
constexpr size_t kShown = 100;

bool is_document(const json& value) {
  return value.is_object() || value.is_array();
}

// Discarded where there is none.
json last_document(const std::string& output) {
  json whole = json::parse(output, nullptr, false);
  if (is_document(whole)) return whole;
  std::string_view rest = output;
  while (!rest.empty()) {
    if (rest.back() == '\n') rest.remove_suffix(1);
    const size_t before = rest.rfind('\n');
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    json line = json::parse(rest.substr(begin), nullptr, false);
    if (is_document(line)) return line;
    rest = rest.substr(0, begin);
  }
  return json(json::value_t::discarded);
}

Result<double> read_json(const JsonPath& path, const std::string& output) {
  const json document = last_document(output);
  if (!document.is_discarded()) return path.number(document);
  return failed(fmt::format(
      "no {}: standard output has no line that is a JSON object or list; it {}",
      one_line(path.text()),
      output.empty() ? "is empty" : fmt::format("begins '{}'", shorten(one_line(output), kShown))));
}

Result<double> read_regex(const LineRegex& regex, const std::string& output,
                          const std::string& errors) {
  Result<double> number = regex.number(output);
  if (number.ok()) return number;
  const Result<double> other = regex.number(errors);
  if (other.ok()) return other;
  return failed(fmt::format(
      "{} of standard output or standard error; standard output {}", number.error().message,
      output.empty() ? "is empty" : fmt::format("begins '{}'", shorten(one_line(output), kShown))));
}

}  // namespace

Result<MetricReader> MetricReader::parse(std::string_view read) {
  if (read.starts_with(kJson)) {
    TRY_ASSIGN(JsonPath path, JsonPath::parse(read.substr(kJson.size())));
    return MetricReader(std::move(path));
  }
  if (read.starts_with(kRegex)) {
    TRY_ASSIGN(LineRegex regex, LineRegex::parse(std::string(read.substr(kRegex.size()))));
    return MetricReader(std::move(regex));
  }
  return usage_error(fmt::format("'{}' says not how the metric is read", one_line(read)));
}

Result<double> MetricReader::read(const std::string& output, const std::string& errors) const {
  if (const auto* path = std::get_if<JsonPath>(&how_)) return read_json(*path, output);
  return read_regex(std::get<LineRegex>(how_), output, errors);
}

}  // namespace reckon::adapters
