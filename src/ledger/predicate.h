// `revisit_when` predicates: "chunk >= 2048", "sms > 100". Pure and thread-safe.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ledger/scope.h"

namespace reckon::ledger {

enum class Comparison { kLess, kLessEqual, kEqual, kNotEqual, kGreaterEqual, kGreater };

struct Predicate {
  std::string field;  // letters, digits, '_' and '.'
  Comparison comparison = Comparison::kEqual;
  double number = 0;

  bool operator==(const Predicate&) const = default;
};

using Facts = std::map<std::string, double>;

// "field op number" with op one of < <= == != >= > (and = for ==). Usage errors name the text.
[[nodiscard]] Result<Predicate> parse_predicate(std::string_view text);

// False where the field is not among the facts: an unknown fact is no reason to measure again.
[[nodiscard]] bool holds(const Predicate& predicate, const Facts& facts);

// The numbers that a scope states: chunk, rows, context, units (also as sms for "sm_..." devices
// and as cores otherwise) and memory_gib.
[[nodiscard]] Facts facts_of(const Scope& scope);

}  // namespace reckon::ledger
