// Where code, rules and recipes cite the ledger.
//
// A comment cites by `ledger: rk-…` (any unique prefix) or says `ledger: unmeasured`. A rule file
// is YAML: each item of its list `rules` must cite, by its own `ledger` or that of the file; a
// recipe's list is `switches`, of items with `key` and `value`. What a rule applies to stands under
// `when`, in the item, the file or both: fields of a scope (scope.h, dotted) with a value, a list
// of values, or a range `128..2048`. docs/ledger.md has examples. Pure and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reckon::ledger {

struct Condition {
  std::string field;
  std::vector<std::string> values;  // all of them; of a range its two ends
  bool range = false;
};

struct Citation {
  std::string path;
  int line = 0;
  std::string what;                  // "comment", "rule", "switch prefill.tile=tall"
  std::vector<std::string> entries;  // as written
  bool unmeasured = false;           // it says so
  std::vector<Condition> conditions;
  std::string switch_key;  // of a recipe's item
  std::string switch_value;
};

[[nodiscard]] std::vector<Citation> citations_in_comments(std::string_view text,
                                                          const std::string& path);

// One an item, also where it cites nothing. Usage errors: as parse_yaml, no list `rules` or
// `switches`, a `when` that is no map of values.
[[nodiscard]] Result<std::vector<Citation>> citations_in_rules(std::string_view text,
                                                               const std::string& path);

}  // namespace reckon::ledger
