// Go's benchmark text:
// https://go.googlesource.com/proposal/+/master/design/14313-benchmark-format.md
#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include "base/text.h"
#include "base/utf8.h"
#include "ledger/exchange/formats.h"

namespace reckon::ledger::exchange {
namespace {

constexpr std::string_view kPrefix = "Benchmark";
constexpr size_t kShown = 60;

bool parse_number(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// As one word of a line: spaces and what else parts words become '_'; never empty.
std::string one_word(std::string text) {
  for (char& c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) c = '_';
  }
  return text.empty() ? "_" : text;
}

// "goos: linux": a lower-case key, a colon and a space.
bool is_setting(const std::string& line) {
  const size_t colon = line.find(": ");
  return colon != std::string::npos && colon > 0 && line[0] >= 'a' && line[0] <= 'z' &&
         line.find(' ') > colon;
}

}  // namespace

Result<std::vector<Series>> read_go(std::string_view text, const std::string& path) {
  if (!valid_utf8(text)) return usage_error(path + ": expected text in UTF-8");
  std::vector<Series> found;
  std::map<std::pair<std::string, std::string>, size_t> index;  // name and unit
  nlohmann::json settings = nlohmann::json::object();
  for (const std::string& line : split(text, '\n')) {
    if (is_setting(line))
      settings[line.substr(0, line.find(':'))] = line.substr(line.find(": ") + 2);
    const std::vector<std::string> words = words_of(line);
    double iterations = 0;
    if (words.size() < 4 || !words[0].starts_with(kPrefix) || !parse_number(words[1], iterations)) {
      continue;
    }
    for (size_t i = 2; i + 1 < words.size(); i += 2) {
      double value = 0;
      if (!parse_number(words[i], value)) {
        return usage_error(
            fmt::format("{}: '{}' is no number", path, shorten(one_line(words[i]), kShown)));
      }
      const std::string& unit = words[i + 1];
      const auto [at, is_new] = index.emplace(std::pair(words[0], unit), found.size());
      if (is_new) {
        const bool speed = unit.ends_with("/s");
        found.push_back({words[0].substr(kPrefix.size()), unit, speed, {}, settings});
      }
      found[at->second].samples.push_back(value);
    }
  }
  if (found.empty()) return usage_error(path + ": no benchmark lines");
  return found;
}

// "rk-abc/base" becomes BenchmarkReckon/entry=rk-abc/arm=base, which benchstat can group by.
Result<std::string> write_go(std::span<const Series> all) {
  std::string text;
  for (const Series& series : all) {
    const size_t slash = series.name.rfind('/');
    std::string name = slash == std::string::npos
                           ? series.name
                           : fmt::format("Reckon/entry={}/arm={}", series.name.substr(0, slash),
                                         series.name.substr(slash + 1));
    name = one_word(std::move(name));
    const std::string unit = one_word(series.unit);
    for (const double sample : series.samples) {
      text += fmt::format("{}{} 1 {} {}\n", kPrefix, name, sample, unit);
    }
  }
  return text;
}

}  // namespace reckon::ledger::exchange
