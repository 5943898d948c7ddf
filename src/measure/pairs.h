// Pairs, their log ratios, and the order that their arms run in. Pure and thread-safe.
//
// The unit of a comparison is the pair: base and arm back to back. d = ln(arm/base) where higher is
// better and ln(base/arm) where lower is, so d > 0 is always the better arm.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace reckon::measure {

enum class Better { kHigher, kLower };
enum class Order { kBaseFirst, kArmFirst };

struct Pair {
  double base = 0;  // in the metric's unit, > 0
  double arm = 0;
  Order order = Order::kBaseFirst;
  bool warmup = false;  // kept, not counted
};

// Error: a value that is not finite or not above zero.
[[nodiscard]] Result<double> log_ratio(double base, double arm, Better better);

// d of every counted pair, in order. Errors name the pair (counted from 1, warm-ups included).
[[nodiscard]] Result<std::vector<double>> pair_effects(std::span<const Pair> pairs, Better better);

// The median (mean of the middle two for an even count). Error: no values, or one not finite.
[[nodiscard]] Result<double> median(std::span<const double> values);

// d of the counted pairs, apart by what ran first.
struct EffectsByOrder {
  std::vector<double> base_first, arm_first;
};
[[nodiscard]] Result<EffectsByOrder> effects_by_order(std::span<const Pair> pairs, Better better);

// A round's result: the median of its counted pairs, taken within each order, and the mean of the
// two (of one order alone where the other has no pair). What the second slot costs cancels between
// the orders. A plain median would not let it: with a slot term larger than the noise the middle
// two of six pairs are the outermost of either order, and stray values decide (docs/measuring.md).
// Error: no counted pair, or a value that has no logarithm.
[[nodiscard]] Result<double> round_median(std::span<const Pair> pairs, Better better);

// ABBA or BAAB for every two pairs, drawn from the seed; an odd last pair is drawn alone. The same
// seed gives the same order on every machine. pairs <= 0 gives none.
[[nodiscard]] std::vector<Order> balanced_order(int pairs, uint64_t seed);

// What running second is worth: half of the mean d of pairs whose arm ran second less that of pairs
// whose arm ran first, in log units. Below zero: whatever runs second is the worse for it.
struct SlotTerm {
  double log_units = 0;
  double standard_error = 0;  // from the scatter within each order
};

// Error: fewer than two counted pairs in either order.
[[nodiscard]] Result<SlotTerm> slot_term(std::span<const Pair> pairs, Better better);

}  // namespace reckon::measure
