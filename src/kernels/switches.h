// Switches: the named, typed settings that decide which code runs. One registry lists them all.
//
// A SwitchSet is a value (copied freely, compared by value); setting is the only thing that can
// fail, with a usage error that names the key, the value, what is allowed and the nearest known
// word, or what is wrong with a file. Not thread-safe to modify.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/op.h"
#include "kernels/tile_rules.h"

namespace reckon::kernels {

// kFile: words, or the path of a file, which is read when the switch is set.
enum class SwitchKind : uint8_t { kChoice, kInteger, kFile };

// A word with a number behind it: "replay:0.9". A number has one spelling: digits, no sign, no
// exponent, no zero that could be left out.
struct SwitchForm {
  std::string word;
  double minimum = 0, maximum = 0;
};

struct SwitchInfo {
  std::string key;
  SwitchKind kind = SwitchKind::kChoice;
  std::vector<std::string> values;   // allowed words, the default first; "auto" or "all" included
  int64_t minimum = 0, maximum = 0;  // integers: allowed range (beside any words in `values`)
  std::vector<SwitchForm> forms;     // that are allowed beside `values`
  std::string default_value;
  std::vector<Op> reach_ops;        // what it can change; empty: every op
  std::vector<Phase> reach_phases;  // empty: every phase
  std::string help;                 // one line
};

// prefill.*, decode.*, numerics, kv.type, cpu.isa, cpu.threads, and kernel.<op> for each op
// (values: auto and the variants of the table).
[[nodiscard]] std::span<const SwitchInfo> switch_registry();
[[nodiscard]] const SwitchInfo* find_switch(std::string_view key);

class SwitchSet {
 public:
  SwitchSet() = default;  // every switch at its default

  [[nodiscard]] Status set(std::string_view key, std::string_view value);
  [[nodiscard]] Status set_assignment(std::string_view key_equals_value);  // "key=value"

  [[nodiscard]] std::string get(std::string_view key) const;  // key must be known: CHECK
  [[nodiscard]] int64_t integer(std::string_view key) const;  // a word value gives 0
  // The number of a value of the form "word:number"; none where the value is another.
  [[nodiscard]] std::optional<double> number(std::string_view key, std::string_view word) const;
  // Every switch that differs from its default, sorted by key; what an entry records.
  [[nodiscard]] const std::map<std::string, std::string>& changed() const { return changed_; }
  // The file that prefill.tile_rules names; null where its value is a word.
  [[nodiscard]] const std::shared_ptr<const TileRules>& tile_rules() const { return tile_rules_; }

  // Files count by their content.
  friend bool operator==(const SwitchSet& a, const SwitchSet& b);

 private:
  std::map<std::string, std::string> changed_;
  std::shared_ptr<const TileRules> tile_rules_;
};

}  // namespace reckon::kernels
