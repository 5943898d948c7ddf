#include "base/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/bytes.h"
#include "base/text.h"

namespace reckon {
namespace {

std::string figure(double value, const std::string& unit) {
  if (unit == "B" && value >= 0 && value < 1e18) {
    return format_bytes_short(static_cast<uint64_t>(value));
  }
  constexpr double kLongest = 1e12;  // longer ones are written with an exponent
  return std::fabs(value) >= 1000 && std::fabs(value) < kLongest ? fmt::format("{:.0f}", value)
                                                                 : fmt::format("{:#.4g}", value);
}

// The first `shown` of them.
std::string figures(const std::vector<double>& values, const std::string& unit, size_t shown) {
  std::vector<std::string> parts;
  for (const double value : values) {
    if (parts.size() == shown) {
      parts.emplace_back("…");
      break;
    }
    parts.push_back(figure(value, unit));
  }
  return join(parts, " / ");
}

std::string suffix(const std::string& unit) {
  return unit.empty() || unit == "B" ? "" : " " + unit;
}

std::string arms_of_rounds(const std::vector<double>& base, const std::vector<double>& arm,
                           const std::string& unit, size_t shown) {
  return figures(base, unit, shown) + " -> " + figures(arm, unit, shown) + suffix(unit);
}

size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

std::string share_text(double share) {
  const double percent = std::fabs(share) * 100;
  return percent == 0 || percent >= 0.95 ? fmt::format("{:.1f}%", percent)
                                         : fmt::format("{:.2g}%", percent);
}

std::string signed_share_text(double share) {
  return (share < 0 ? "-" : "+") + share_text(share);
}

std::string values_text(const std::vector<double>& values, const std::string& unit) {
  return figures(values, unit, values.size()) + suffix(unit);
}

std::string arms_text(const std::vector<double>& base, const std::vector<double>& arm,
                      const std::string& unit) {
  return arms_of_rounds(base, arm, unit, std::max(base.size(), arm.size()));
}

std::string arms_text_within(const std::vector<double>& base, const std::vector<double>& arm,
                             const std::string& unit, size_t columns) {
  size_t shown = std::max(base.size(), arm.size());
  std::string text = arms_of_rounds(base, arm, unit, shown);
  while (shown > 1 && width(text) > columns) text = arms_of_rounds(base, arm, unit, --shown);
  return text;
}

}  // namespace reckon
