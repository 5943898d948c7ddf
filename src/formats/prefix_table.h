// Which of a set of strings a text begins with. Const after finish() and thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

class PrefixTable {
 public:
  // `text` is not empty. Of equal strings the one added first counts.
  void add(std::string text, int32_t value) { rows_.push_back({std::move(text), value}); }
  void finish();  // once, before any look-up

  struct Match {
    size_t length = 0;  // 0 where there is none
    int32_t value = 0;
  };
  [[nodiscard]] Match longest(std::string_view text) const;
  // Calls found(length, value) for each string that `text` begins with, the shortest first.
  template <typename Found>
  void each(std::string_view text, Found found) const;

 private:
  struct Row {
    std::string text;
    int32_t value;
  };
  struct Range {
    size_t begin;
    size_t end;
  };
  // The rows of `range`, which agree in their first `depth` bytes, that have `byte` next.
  [[nodiscard]] Range narrow(Range range, size_t depth, char byte) const;

  std::vector<Row> rows_;              // sorted, each string once
  std::array<Range, 256> by_first_{};  // by first byte
};

template <typename Found>
void PrefixTable::each(std::string_view text, Found found) const {
  if (text.empty()) return;
  Range range = by_first_[static_cast<uint8_t>(text[0])];
  for (size_t depth = 1; range.begin < range.end; ++depth) {
    const Row& row = rows_[range.begin];  // the shortest comes first
    if (row.text.size() == depth) found(depth, row.value);
    if (depth == text.size()) return;
    range = narrow(range, depth, text[depth]);
  }
}

}  // namespace reckon
