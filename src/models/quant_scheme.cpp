#include "models/quant_scheme.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace reckon::models {
namespace {

struct NamedScheme {
  std::string_view name;
  std::optional<DType> matrices;
};

constexpr std::array kSchemes{
    NamedScheme{"none", std::nullopt},
    NamedScheme{"q4", DType::kP4},
    NamedScheme{"q8", DType::kP8},
};

}  // namespace

Result<QuantScheme> QuantScheme::parse(std::string_view name) {
  for (const NamedScheme& scheme : kSchemes) {
    if (scheme.name != name) continue;
    QuantScheme result;
    result.matrices_ = scheme.matrices;
    return result;
  }
  return usage_error(
      fmt::format("unknown quantisation '{}'; expected {}", name, join(names(), ", ")));
}

std::vector<std::string> QuantScheme::names() {
  std::vector<std::string> names;
  for (const NamedScheme& scheme : kSchemes) names.emplace_back(scheme.name);
  return names;
}

}  // namespace reckon::models
