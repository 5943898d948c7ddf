#include "cli/report_rows.h"

#include <fmt/format.h>

namespace reckon::cli {
namespace {

using ledger::Entry;

Html effect_cell(const Entry& entry) {
  const std::string effect = effect_of(entry);
  if (effect.empty()) return {};
  const bool stands = entry.status != ledger::EntryStatus::kOverturned;
  return stands ? html_text(effect) : element("s", effect);
}

Html entry_row(const Entry& entry, std::string_view root) {
  Html idea = link(std::string(root) + entry_file(entry.id), title_of(entry));
  idea += element("code", arms_of(entry));
  Html row = element("td", badge_with_marks(entry));
  row += element("td", {{"class", "n"}}, effect_cell(entry));
  row += element("td", {{"class", "idea"}}, idea);
  row += element("td", facet_value(Facet::kModel, entry));
  row += element("td", facet_value(Facet::kDevice, entry));
  return element("tr", row + element("td", {{"class", "day"}}, day_of(entry.updated)));
}

Html count_link(const std::string& file, const std::string& text, int64_t count, bool current,
                const std::string& style) {
  const Html content =
      html_text(text + " ") + element("span", {{"class", "count"}}, grouped(count));
  return element("a", {{"class", style}, {"href", file}, {"aria-current", current ? "page" : ""}},
                 content);
}

}  // namespace

std::vector<Row> make_rows(std::span<const Entry* const> entries, std::string_view root) {
  std::vector<Row> rows;
  rows.reserve(entries.size());
  for (const Entry* entry : entries) {
    rows.push_back({entry, group_of(*entry), is_unfinished(*entry), entry_row(*entry, root)});
  }
  return rows;
}

Rows all_of(const std::vector<Row>& rows) {
  Rows all;
  all.reserve(rows.size());
  for (const Row& row : rows) all.push_back(&row);
  return all;
}

RowCounts count_rows(const Rows& rows) {
  RowCounts counts;
  for (const Row* row : rows) {
    ++counts.groups[static_cast<size_t>(row->group)];
    if (row->unfinished) ++counts.unfinished;
    ++counts.all;
  }
  return counts;
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

Html rows_table(std::span<const Row* const> rows, std::string_view label) {
  Html titles;
  for (const char* title : {"Verdict", "Effect", "Idea and switch", "Model", "Device", "Day"}) {
    const bool number = std::string_view(title) == "Effect";
    titles += element("th", {{"scope", "col"}, {"class", number ? "n" : ""}}, title);
  }
  Html lines;
  for (const Row* row : rows) lines += row->markup;
  return element("table", {{"class", "entries"}},
                 element("caption", {{"class", "hidden"}}, label) +
                     element("thead", element("tr", titles)) + element("tbody", lines));
}

Html verdict_chips(const RowCounts& counts, const std::string& facet_name, std::string_view current,
                   const std::string& root) {
  Html links =
      count_link(root + list_file(facet_name, ""), "all", counts.all, current.empty(), "chip");
  for (int i = 0; i < kGroups; ++i) {
    const auto group = static_cast<Group>(i);
    if (counts.of(group) == 0) continue;
    const std::string slug = group_slug(group);
    links += count_link(root + list_file(facet_name, slug), group_title(group), counts.of(group),
                        current == slug, "chip " + slug);
  }
  if (counts.unfinished > 0) {
    const std::string slug(kUnfinishedSlug);
    links += count_link(root + list_file(facet_name, slug), slug, counts.unfinished,
                        current == slug, "chip " + slug);
  }
  return element("nav", {{"class", "chips"}, {"aria-label", "Filter by verdict"}}, links);
}

}  // namespace reckon::cli
