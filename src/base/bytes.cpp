#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace reckon {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 12> kUnits{{
    {"", 1.0},
    {"B", 1.0},
    {"kB", 1e3},
    {"KB", 1e3},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
    {"KiB", 1024.0},
    {"kiB", 1024.0},
    {"MiB", 1048576.0},
    {"GiB", 1073741824.0},
    {"TiB", 1099511627776.0},
}};

Error bad_size(std::string_view text) {
  return usage_error(fmt::format(
      "'{}' is not a byte size: expected a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB",
      text));
}

// Splits "1.5GiB" into 1.5 and "GiB"; false where it does not start with a plain number.
bool split_number(std::string_view text, double& number, std::string_view& unit) {
  const size_t end = text.find_first_not_of("0123456789.");
  const std::string digits(text.substr(0, end));
  if (digits.empty() || digits.front() == '.' || digits.back() == '.') return false;
  char* stop = nullptr;
  number = std::strtod(digits.c_str(), &stop);
  if (stop != digits.c_str() + digits.size()) return false;
  unit = end == std::string_view::npos ? std::string_view() : text.substr(end);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return std::isfinite(number);
}

}  // namespace

Result<uint64_t> parse_bytes(std::string_view text) {
  double number = 0;
  std::string_view unit;
  if (!split_number(text, number, unit)) return bad_size(text);
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bytes = number * factor;
    if (bytes >= 9223372036854775808.0) return bad_size(text);
    return static_cast<uint64_t>(std::llround(bytes));
  }
  return bad_size(text);
}

Result<uint64_t> parse_limit(std::string_view text, uint64_t whole) {
  if (text.empty() || text.back() != '%') return parse_bytes(text);
  double percent = 0;
  std::string_view unit;
  if (!split_number(text, percent, unit) || unit != "%" || percent <= 0 || percent > 100) {
    return usage_error(
        fmt::format("'{}' is not a share: expected a percentage over 0% and up to 100%", text));
  }
  return static_cast<uint64_t>(static_cast<double>(whole) * percent / 100.0);
}

std::string format_bytes(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} B", bytes);
  if (bytes < 1000000) return fmt::format("{:.1f} kB ({:.1f} KiB)", value / 1e3, value / 1024);
  if (bytes < 1000000000) {
    return fmt::format("{:.1f} MB ({:.1f} MiB)", value / 1e6, value / 1048576);
  }
  return fmt::format("{:.2f} GB ({:.2f} GiB)", value / 1e9, value / 1073741824);
}

std::string format_bytes_short(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1048576) return fmt::format("{:.1f} KiB", value / 1024);
  if (bytes < 1073741824) return fmt::format("{:.1f} MiB", value / 1048576);
  return fmt::format("{:.2f} GiB", value / 1073741824);
}

bool multiply_checked(uint64_t a, uint64_t b, uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

bool add_checked(uint64_t a, uint64_t b, uint64_t& sum) {
  return !__builtin_add_overflow(a, b, &sum);
}

}  // namespace reckon
