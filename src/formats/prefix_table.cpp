#include "formats/prefix_table.h"

#include <algorithm>

namespace reckon {

void PrefixTable::finish() {
  std::stable_sort(rows_.begin(), rows_.end(),
                   [](const Row& a, const Row& b) { return a.text < b.text; });
  const auto last = std::unique(rows_.begin(), rows_.end(),
                                [](const Row& a, const Row& b) { return a.text == b.text; });
  rows_.erase(last, rows_.end());
  for (size_t i = 0; i < rows_.size(); ++i) {
    Range& range = by_first_[static_cast<uint8_t>(rows_[i].text[0])];
    if (range.begin == range.end) range.begin = i;
    range.end = i + 1;
  }
}

PrefixTable::Match PrefixTable::longest(std::string_view text) const {
  Match match;
  each(text, [&](size_t length, int32_t value) { match = {length, value}; });
  return match;
}

PrefixTable::Range PrefixTable::narrow(Range range, size_t depth, char byte) const {
  // std::string sorts by unsigned bytes; a string that ends here comes before all others.
  const auto key = [&](const Row& row) {
    return row.text.size() > depth ? static_cast<int>(static_cast<uint8_t>(row.text[depth])) : -1;
  };
  const int wanted = static_cast<uint8_t>(byte);
  const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(range.begin);
  const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(range.end);
  const auto first =
      std::partition_point(begin, end, [&](const Row& row) { return key(row) < wanted; });
  const auto last =
      std::partition_point(first, end, [&](const Row& row) { return key(row) <= wanted; });
  return {static_cast<size_t>(first - rows_.begin()), static_cast<size_t>(last - rows_.begin())};
}

}  // namespace reckon
