// Entries as lines of a list, made once and shown in many lists. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report_parts.h"

namespace reckon::cli {

struct Row {
  const ledger::Entry* entry = nullptr;
  Group group = Group::kOpen;
  bool unfinished = false;
  Html markup;  // a <tr>
};
using Rows = std::vector<const Row*>;

// `root` as Document::root, of the pages that show them.
[[nodiscard]] std::vector<Row> make_rows(std::span<const ledger::Entry* const> entries,
                                         std::string_view root);
[[nodiscard]] Rows all_of(const std::vector<Row>& rows);

struct RowCounts {
  std::array<int64_t, kGroups> groups{};
  int64_t unfinished = 0;
  int64_t all = 0;

  [[nodiscard]] int64_t of(Group group) const { return groups[static_cast<size_t>(group)]; }
};
[[nodiscard]] RowCounts count_rows(const Rows& rows);

[[nodiscard]] std::string grouped(int64_t number);  // "20,000"

[[nodiscard]] Html rows_table(std::span<const Row* const> rows, std::string_view label);

inline constexpr std::string_view kUnfinishedSlug = "unfinished";

// The verdicts of a list, each a link to its cut; `current` is the slug of the one that is shown,
// "" for all of them.
[[nodiscard]] Html verdict_chips(const RowCounts& counts, const std::string& facet_name,
                                 std::string_view current, const std::string& root);

}  // namespace reckon::cli
