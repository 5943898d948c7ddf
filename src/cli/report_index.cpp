#include "cli/report_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/report_rows.h"
#include "cli/report_style.h"
#include "cli/table.h"

namespace reckon::cli {
namespace {

using ledger::Entry;
using Entries = std::vector<const Entry*>;

constexpr size_t kNewest = 20;      // on the index
constexpr size_t kPagesAround = 2;  // of the current one, that a pager names

// One list in all its pages.
struct List {
  std::string title;       // "Switch: prefill.tile_order"
  std::string facet_name;  // "": of everything
  std::string group_slug;  // "": of every verdict
  RowCounts counts;        // of the facet, all verdicts
};

Html page_link(const List& list, size_t page, size_t current) {
  // Lists lie beside each other.
  const std::string file = list_file(list.facet_name, list.group_slug, page).substr(6);
  return element("a", {{"href", file}, {"aria-current", page == current ? "page" : ""}},
                 std::to_string(page));
}

Html pager(const List& list, size_t current, size_t pages) {
  if (pages < 2) return {};
  Html links;
  size_t last = 0;
  for (size_t page = 1; page <= pages; ++page) {
    const bool near = page + kPagesAround >= current && page <= current + kPagesAround;
    if (page != 1 && page != pages && !near) continue;
    if (page > last + 1) links += element("span", "…");
    links += page_link(list, page, current);
    last = page;
  }
  return element("nav", {{"class", "pager"}, {"aria-label", "Pages"}}, links);
}

std::string list_page(const List& list, const Rows& rows, size_t page, size_t pages,
                      const ReportContext& context) {
  const size_t from = (page - 1) * kListRows;
  const size_t count = std::min(kListRows, rows.size() - from);
  const std::string of_these =
      fmt::format("{} to {} of {}, newest first", rows.empty() ? 0 : from + 1, from + count,
                  grouped(static_cast<int64_t>(rows.size())));
  Html main = element("h1", list.title);
  main += verdict_chips(list.counts, list.facet_name, list.group_slug, "../");
  main += element("p", {{"class", "range"}}, of_these) + pager(list, page, pages);
  main += rows_table(std::span(rows).subspan(from, count), list.title);
  Document document;
  document.title = fmt::format("{} {}", list.title, list.group_slug);
  document.root = "../";
  document.main = main + pager(list, page, pages);
  document.footer = context.footer;
  return document_text(document);
}

Status make_list(const List& list, const Rows& rows, const ReportContext& context,
                 const TakePage& take) {
  const size_t pages = std::max<size_t>(1, (rows.size() + kListRows - 1) / kListRows);
  for (size_t page = 1; page <= pages; ++page) {
    TRY(take(list_file(list.facet_name, list.group_slug, page),
             list_page(list, rows, page, pages, context)));
  }
  return {};
}

// The list of a facet's value and its cuts by verdict.
Status make_cuts(List list, const Rows& rows, const ReportContext& context, const TakePage& take) {
  list.counts = count_rows(rows);
  TRY(make_list(list, rows, context, take));
  std::map<std::string, Rows> cuts;  // by slug
  for (const Row* row : rows) {
    cuts[group_slug(row->group)].push_back(row);
    if (row->unfinished) cuts[std::string(kUnfinishedSlug)].push_back(row);
  }
  for (const auto& [slug, cut] : cuts) {
    list.group_slug = slug;
    TRY(make_list(list, cut, context, take));
  }
  return {};
}

std::map<std::string, Rows> by_value(Facet facet, const Rows& rows) {
  std::map<std::string, Rows> values;
  for (const Row* row : rows) values[facet_value(facet, *row->entry)].push_back(row);
  return values;
}

// How a facet's values ended: a row a value, a column a verdict, each number a link.
Html facet_table(Facet facet, const Rows& rows, const RowCounts& totals,
                 const ReportContext& context) {
  std::vector<HtmlColumn> columns = {{facet_title(facet)}, {"all", true}};
  for (int i = 0; i < kGroups; ++i) {
    const auto group = static_cast<Group>(i);
    if (totals.of(group) > 0) columns.push_back({group_title(group), true});
  }
  HtmlTable table("Verdicts by " + facet_word(facet), columns, "counts");
  for (const auto& [value, of_value] : by_value(facet, rows)) {
    const std::string& name = context.facets->name(facet, value);
    const RowCounts counts = count_rows(of_value);
    std::vector<Html> cells = {link(list_file(name, ""), value), html_text(grouped(counts.all))};
    for (int i = 0; i < kGroups; ++i) {
      const auto group = static_cast<Group>(i);
      if (totals.of(group) == 0) continue;
      cells.push_back(counts.of(group) == 0
                          ? element("span", {{"class", "zero"}}, "0")
                          : link(list_file(name, group_slug(group)), grouped(counts.of(group))));
    }
    table.add(cells);
  }
  return section("by-" + facet_word(facet), "By " + facet_word(facet), table.html());
}

std::string summary_sentence(const RowCounts& counts) {
  const int64_t reported = counts.of(Group::kReported);
  std::string text =
      fmt::format("{} {}: {} measured here", grouped(counts.all),
                  counts.all == 1 ? "entry" : "entries", grouped(counts.all - reported));
  if (reported > 0) text += fmt::format(", {} reported elsewhere", grouped(reported));
  text += ".";
  if (counts.unfinished > 0) {
    text += fmt::format(" {} {} unfinished: no verdict, no mechanism, or a modified tree.",
                        grouped(counts.unfinished), counts.unfinished == 1 ? "is" : "are");
  }
  return text;
}

// Shown by the script alone.
Html search_form() {
  const Html label = element("label", {{"for", "search"}}, "Search ideas, switches, ids");
  Html form = label + empty_element("input", {{"id", "search"}, {"type", "search"}});
  for (const char* name : {"verdict", "switch", "model", "device"}) {
    form += element("label", {{"for", std::string("search-") + name}, {"class", "hidden"}}, name);
    form += element("select", {{"id", std::string("search-") + name}}, "");
  }
  form += element("output", {{"id", "found"}, {"for", "search"}}, "");
  return element("form", {{"id", "search-form"}, {"hidden", "hidden"}, {"role", "search"}}, form) +
         element("div", {{"id", "results"}}, "");
}

}  // namespace

Status make_lists(const Entries& entries, const ReportContext& context, const TakePage& take) {
  const std::vector<Row> made = make_rows(entries, "../");
  const Rows rows = all_of(made);
  List all;
  all.title = "All entries";
  TRY(make_cuts(all, rows, context, take));
  for (const Facet facet : kFacets) {
    for (const auto& [value, of_value] : by_value(facet, rows)) {
      List list;
      list.title = facet_title(facet) + ": " + value;
      list.facet_name = context.facets->name(facet, value);
      TRY(make_cuts(list, of_value, context, take));
    }
  }
  return {};
}

std::string index_document(const Entries& entries, const ReportContext& context) {
  const std::vector<Row> made = make_rows(entries, "");
  const Rows rows = all_of(made);
  const RowCounts counts = count_rows(rows);
  Document document;
  document.title = "Ledger of experiments";
  document.footer = context.footer;
  document.main = element("h1", document.title) + element("p", summary_sentence(counts));
  if (entries.empty()) return document_text(document);
  document.main += verdict_chips(counts, "", "none", "") + search_form();
  const auto shown = std::span(rows).subspan(0, std::min(kNewest, rows.size()));
  Html newest = rows_table(shown, "Newest entries");
  if (rows.size() > kNewest) {
    newest +=
        element("p", link(list_file("", ""), fmt::format("All {} entries", grouped(counts.all))));
  }
  document.main += section("newest", "Newest", newest);
  for (const Facet facet : kFacets) {
    document.navigation += link("#by-" + facet_word(facet), "By " + facet_word(facet));
    document.main += facet_table(facet, rows, counts, context);
  }
  document.script = std::string(kSearchScript);
  return document_text(document);
}

std::string search_data(const Entries& entries) {
  std::string text = "reckonEntries([\n";
  for (const Entry* entry : entries) {
    const nlohmann::json row = {entry->id,
                                group_title(group_of(*entry)),
                                verdict_word(*entry),
                                join(marks_of(*entry), " "),
                                effect_of(*entry),
                                one_line(title_of(*entry)),
                                one_line(arms_of(*entry)),
                                one_line(facet_value(Facet::kSwitch, *entry)),
                                one_line(facet_value(Facet::kModel, *entry)),
                                one_line(facet_value(Facet::kDevice, *entry)),
                                day_of(entry->updated)};
    text += row.dump(-1, ' ', true) + ",\n";
  }
  return text + "]);\n";
}

std::string index_text(const Entries& entries) {
  Table table({{"entry"}, {"day"}, {"verdict"}, {"effect", Align::kRight}, {"model"}, {"switch"}});
  for (const Entry* entry : entries) {
    std::string verdict = verdict_word(*entry);
    for (const std::string& mark : marks_of(*entry)) verdict += fmt::format(" ({})", mark);
    table.add({entry->id, day_of(entry->updated), verdict, effect_of(*entry), model_of(*entry),
               arms_of(*entry)});
  }
  return table.text();
}

}  // namespace reckon::cli
