#include "ledger/exchange/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/text.h"

namespace reckon::ledger {
namespace exchange {
namespace {

constexpr std::array<FileFormat, 4> kFormats{{
    {"go", read_go, write_go},
    {"gbench", read_gbench, write_gbench},
    {"hyperfine", read_hyperfine, write_hyperfine},
    {"llama-bench", read_llama_bench, write_llama_bench},
}};

constexpr std::array<std::pair<std::string_view, double>, 5> kTimes{
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"ns/op", 1e-9}}};

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, const std::string& path) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return usage_error(path + ": not JSON");
  return json;
}

Result<std::vector<double>> numbers_of(const nlohmann::json& list, const std::string& where) {
  std::vector<double> values;
  if (!list.is_array()) return usage_error(where + ": expected a list of numbers");
  for (const nlohmann::json& item : list) {
    if (!item.is_number()) return usage_error(where + ": expected a list of numbers");
    values.push_back(item.get<double>());
  }
  return values;
}

std::optional<double> seconds_of(double value, std::string_view unit) {
  std::optional<double> all;
  if (unit == "tok/s") all = 1 / value;
  for (const auto& [name, seconds] : kTimes) {
    if (name == unit) all = value * seconds;
  }
  // What a file can hold in nanoseconds.
  const bool usable = all && *all > 0 && std::isfinite(*all * 1e9);
  return usable ? all : std::nullopt;
}

Result<std::vector<double>> all_seconds(const Series& series, std::string_view format) {
  std::vector<double> values;
  for (const double sample : series.samples) {
    const std::optional<double> seconds = seconds_of(sample, series.unit);
    if (!seconds) {
      return usage_error(fmt::format("{}: {} {} is no time, and {} holds nothing else",
                                     one_line(series.name), sample, one_line(series.unit), format));
    }
    values.push_back(*seconds);
  }
  return values;
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  Spread spread;
  spread.min = values.front();
  spread.max = values.back();
  spread.median = (values[(count - 1) / 2] + values[count / 2]) / 2;
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (count > 1) spread.stddev = std::sqrt(squares / static_cast<double>(count - 1));
  return spread;
}

}  // namespace exchange

std::span<const FileFormat> file_formats() {
  return exchange::kFormats;
}

Result<const FileFormat*> file_format(std::string_view name) {
  std::vector<std::string> names;
  for (const FileFormat& format : exchange::kFormats) {
    if (format.name == name) return &format;
    names.emplace_back(format.name);
  }
  return usage_error(
      fmt::format("no format is called '{}': formats are {}", name, join(names, ", ")));
}

Result<const FileFormat*> recognise_format(std::string_view text, const std::string& path) {
  for (const FileFormat& format : exchange::kFormats) {
    if (format.read(text, path).ok()) return &format;
  }
  return usage_error(path +
                     ": neither Go benchmark text nor the JSON of Google Benchmark, "
                     "hyperfine or llama-bench");
}

}  // namespace reckon::ledger
