#include "kernels/bounds.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace reckon::kernels {

Bound bound_of(std::string name, BoundKind kind, std::vector<double> rates, std::string detail) {
  RECKON_CHECK(!rates.empty());
  std::ranges::sort(rates);
  const size_t middle = rates.size() / 2;
  const double median =
      rates.size() % 2 != 0 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2;
  Bound bound;
  bound.name = std::move(name);
  bound.value = median;
  bound.unit = kind == BoundKind::kMultiply ? "op/s" : kind == BoundKind::kClock ? "Hz" : "byte/s";
  bound.kind = kind;
  bound.spread = (rates.back() - rates.front()) / median;
  bound.detail = std::move(detail);
  return bound;
}

const Bound* best_bound(std::span<const Bound> bounds, BoundKind kind) {
  const Bound* best = nullptr;
  for (const Bound& bound : bounds) {
    if (bound.kind == kind && (best == nullptr || bound.value > best->value)) best = &bound;
  }
  return best;
}

const char* bound_kind_name(BoundKind kind) {
  switch (kind) {
    case BoundKind::kRead:
      return "read";
    case BoundKind::kCopy:
      return "copy";
    case BoundKind::kMultiply:
      return "multiply";
    case BoundKind::kClock:
      return "clock";
  }
  return "";
}

}  // namespace reckon::kernels
