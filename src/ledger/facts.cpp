#include "ledger/facts.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace reckon::ledger {
namespace {

// "6.18.44" of "6.18.44-generic": the digits and dots at the start.
std::string_view leading_version(std::string_view word) {
  const size_t end = std::min(word.find_first_not_of("0123456789."), word.size());
  word = word.substr(0, end);
  while (word.ends_with('.')) word.remove_suffix(1);
  return word;
}

// Of the first word of `text` that starts as "12.2" does, but not as "12" alone.
std::optional<double> version_in(const std::string& text) {
  for (const std::string& word : split(text, ' ')) {
    const std::string_view version = leading_version(word);
    if (version.find('.') == std::string_view::npos || version.starts_with('.')) continue;
    return version_number(version);
  }
  return std::nullopt;
}

void add_version(Facts& facts, const char* name, const std::string& text) {
  if (const std::optional<double> version = version_in(text)) facts.emplace(name, *version);
}

std::string reading(const Environment& environment, const char* name) {
  const auto found = environment.readings.find(name);
  return found == environment.readings.end() ? "" : found->second;
}

}  // namespace

Facts facts_of(const Environment& environment) {
  Facts facts = environment.facts;
  const std::string& compiler = environment.compiler;
  if (compiler.starts_with("GNU ")) add_version(facts, "gcc_version", compiler);
  if (compiler.starts_with("Clang ")) add_version(facts, "clang_version", compiler);
  add_version(facts, "kernel_version", environment.kernel);
  add_version(facts, "driver_version", environment.driver);
  add_version(facts, "cuda_version", reading(environment, "cuda_version"));
  const double khz = std::strtod(reading(environment, "cpu_max_khz").c_str(), nullptr);
  if (khz > 0) facts.emplace("cpu_max_mhz", khz / 1000);
  return facts;
}

}  // namespace reckon::ledger
