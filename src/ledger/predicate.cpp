#include "ledger/predicate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace reckon::ledger {
namespace {

// Longer spellings first, so that ">=" is not read as ">".
constexpr size_t kShown = 60;
constexpr std::array<std::pair<std::string_view, Comparison>, 7> kSpellings{{
    {"<=", Comparison::kLessEqual},
    {">=", Comparison::kGreaterEqual},
    {"==", Comparison::kEqual},
    {"!=", Comparison::kNotEqual},
    {"<", Comparison::kLess},
    {">", Comparison::kGreater},
    {"=", Comparison::kEqual},
}};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_field(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto allowed = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return !text.empty() && letter(text.front()) && std::all_of(text.begin(), text.end(), allowed);
}

bool read_number(std::string_view text, double& number) {
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    return false;
  }
  const std::string copy(text);
  char* end = nullptr;
  number = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() && std::isfinite(number);
}

bool read_value(const std::string& field, std::string_view text, double& number) {
  if (!field.ends_with("_version")) return read_number(text, number);
  const std::optional<double> version = version_number(text);
  number = version.value_or(0);
  return version.has_value();
}

}  // namespace

std::optional<double> version_number(std::string_view text) {
  constexpr size_t kParts = 3;
  constexpr size_t kMostDigits = 3;
  const std::vector<std::string> parts = split(std::string(text), '.');
  if (parts.size() > kParts) return std::nullopt;
  double number = 0;
  for (size_t i = 0; i < kParts; ++i) {
    const std::string part = i < parts.size() ? parts[i] : "0";
    const bool digits = part.find_first_not_of("0123456789") == std::string::npos;
    if (part.empty() || part.size() > kMostDigits || !digits) return std::nullopt;
    number = number * 1000 + std::stoi(part);
  }
  return number;
}

Result<Predicate> parse_predicate(std::string_view text) {
  const size_t at = text.find_first_of("<>=!");
  if (at != std::string_view::npos) {
    for (const auto& [spelling, comparison] : kSpellings) {
      if (!text.substr(at).starts_with(spelling)) continue;
      Predicate predicate{std::string(trim(text.substr(0, at))), comparison, 0};
      if (is_field(predicate.field) &&
          read_value(predicate.field, trim(text.substr(at + spelling.size())), predicate.number)) {
        return predicate;
      }
      break;
    }
  }
  return usage_error(fmt::format("'{}' is not a condition: expected the form 'chunk >= 2048'",
                                 shorten(one_line(text), kShown)));
}

bool holds(const Predicate& predicate, const Facts& facts) {
  const auto fact = facts.find(predicate.field);
  if (fact == facts.end()) return false;
  const double value = fact->second;
  switch (predicate.comparison) {
    case Comparison::kLess:
      return value < predicate.number;
    case Comparison::kLessEqual:
      return value <= predicate.number;
    case Comparison::kEqual:
      return value == predicate.number;
    case Comparison::kNotEqual:
      return value != predicate.number;
    case Comparison::kGreaterEqual:
      return value >= predicate.number;
    case Comparison::kGreater:
      return value > predicate.number;
  }
  return false;
}

Facts facts_of(const Scope& scope) {
  const double units = static_cast<double>(scope.device.units);
  return Facts{{"chunk", static_cast<double>(scope.chunk)},
               {"rows", static_cast<double>(scope.rows)},
               {"context", static_cast<double>(scope.context)},
               {"memory_gib", static_cast<double>(scope.device.memory_gib)},
               {"units", units},
               {scope.device.isa.starts_with("sm_") ? "sms" : "cores", units}};
}

}  // namespace reckon::ledger
