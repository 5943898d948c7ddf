// `revisit_when` predicates: "chunk >= 2048", "sms > 100". Pure and thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ledger/scope.h"

namespace reckon::ledger {

enum class Comparison { kLess, kLessEqual, kEqual, kNotEqual, kGreaterEqual, kGreater };

struct Predicate {
  std::string field;  // letters, digits, '_' and '.'
  Comparison comparison = Comparison::kEqual;
  double number = 0;  // of a field that ends in "_version" as version_number() has it

  bool operator==(const Predicate&) const = default;
};

using Facts = std::map<std::string, double>;

// 6.10.3 as 6010003, so that versions compare as versions do; absent parts are 0. Unset where the
// text is not one to three numbers below 1000 with dots between them.
[[nodiscard]] std::optional<double> version_number(std::string_view text);

// "field op number" with op one of < <= == != >= > (and = for ==); the number is a version where
// the field ends in "_version". Usage errors name the text.
[[nodiscard]] Result<Predicate> parse_predicate(std::string_view text);

// False where the field is not among the facts: an unknown fact is no reason to measure again.
[[nodiscard]] bool holds(const Predicate& predicate, const Facts& facts);

// The numbers that a scope states: chunk, rows, context, units (also as sms for "sm_..." devices
// and as cores otherwise) and memory_gib.
[[nodiscard]] Facts facts_of(const Scope& scope);

}  // namespace reckon::ledger
