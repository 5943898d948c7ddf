#include "cli/roofline.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace reckon::cli {

using kernels::Bound;
using kernels::BoundKind;

std::string format_rate(double value, const std::string& unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}{}", value, decimals, kPrefixes[prefix],
                     unit == "byte/s" ? "B/s" : unit);
}

Table bounds_table(std::span<const Bound> bounds) {
  Table table({{"bound"}, {"rate", Align::kRight}, {"spread", Align::kRight}, {"measured with"}});
  for (const Bound& bound : bounds) {
    table.add({bound.name, format_rate(bound.value, bound.unit),
               fmt::format("{:.1f} %", 100 * bound.spread), bound.detail});
  }
  return table;
}

nlohmann::json bounds_json(std::span<const Bound> bounds) {
  nlohmann::json array = nlohmann::json::array();
  for (const Bound& bound : bounds) {
    array.push_back({{"name", bound.name},
                     {"kind", kernels::bound_kind_name(bound.kind)},
                     {"value", bound.value},
                     {"unit", bound.unit},
                     {"spread", bound.spread},
                     {"detail", bound.detail}});
  }
  return array;
}

Shares shares_of(const kernels::Cost& cost, int64_t tokens, double tokens_per_s,
                 std::span<const Bound> bounds) {
  Shares shares;
  const auto count = static_cast<double>(tokens);
  shares.bytes_per_token = static_cast<double>(cost.bytes) / count;
  shares.operations_per_token = static_cast<double>(cost.operations) / count;
  if (const Bound* read = best_bound(bounds, BoundKind::kRead)) {
    shares.read = shares.bytes_per_token * tokens_per_s / read->value;
  }
  if (const Bound* multiply = best_bound(bounds, BoundKind::kMultiply)) {
    shares.multiply = shares.operations_per_token * tokens_per_s / multiply->value;
    shares.multiply_bound = multiply->name;
  }
  return shares;
}

}  // namespace reckon::cli
