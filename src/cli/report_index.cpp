#include "cli/report_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/report_style.h"
#include "cli/table.h"

namespace reckon::cli {
namespace {

using ledger::Entry;
using Entries = std::vector<const Entry*>;
using Counts = std::array<int64_t, kGroups>;

constexpr size_t kNewest = 20;      // on the index
constexpr size_t kPagesAround = 2;  // of the current one, that a pager names
constexpr std::string_view kUnfinished = "unfinished";

Counts counts_of(const Entries& entries) {
  Counts counts{};
  for (const Entry* entry : entries) ++counts[static_cast<size_t>(group_of(*entry))];
  return counts;
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

Html effect_cell(const Entry& entry) {
  const std::string effect = effect_of(entry);
  if (effect.empty()) return {};
  const bool stands = entry.status != ledger::EntryStatus::kOverturned;
  return stands ? html_text(effect) : element("s", effect);
}

Html entry_row(const Entry& entry, const std::string& root) {
  Html idea = link(root + entry_file(entry.id), title_of(entry));
  idea += element("code", arms_of(entry));
  Html row = element("td", badge_with_marks(entry));
  row += element("td", {{"class", "n"}}, effect_cell(entry));
  row += element("td", {{"class", "idea"}}, idea);
  row += element("td", facet_value(Facet::kModel, entry));
  row += element("td", facet_value(Facet::kDevice, entry));
  return element("tr", row + element("td", {{"class", "day"}}, day_of(entry.updated)));
}

Html entries_table(const Entries& entries, size_t from, size_t to, const std::string& root,
                   const std::string& label) {
  Html titles;
  for (const char* title : {"Verdict", "Effect", "Idea and switch", "Model", "Device", "Day"}) {
    const bool number = std::string_view(title) == "Effect";
    titles += element("th", {{"scope", "col"}, {"class", number ? "n" : ""}}, title);
  }
  Html rows;
  for (size_t i = from; i < std::min(to, entries.size()); ++i) rows += entry_row(*entries[i], root);
  return element("table", {{"class", "entries"}},
                 element("caption", {{"class", "hidden"}}, label) +
                     element("thead", element("tr", titles)) + element("tbody", rows));
}

// One list in all its pages.
struct List {
  std::string title;       // "Switch: prefill.tile_order"
  std::string facet_name;  // "": of everything
  std::string group_slug;  // "": of every verdict
  Counts counts{};         // of the facet, all verdicts
  int64_t unfinished = 0;  // of the facet
};

Html count_link(const std::string& file, const std::string& text, int64_t count, bool current,
                const std::string& style) {
  const Html content =
      html_text(text + " ") + element("span", {{"class", "count"}}, grouped(count));
  return element("a", {{"class", style}, {"href", file}, {"aria-current", current ? "page" : ""}},
                 content);
}

// The verdicts of a facet, each a link to its list.
Html group_filter(const List& list, const std::string& root) {
  int64_t total = 0;
  for (const int64_t count : list.counts) total += count;
  Html links = count_link(root + list_file(list.facet_name, ""), "all", total,
                          list.group_slug.empty(), "chip");
  for (int i = 0; i < kGroups; ++i) {
    const int64_t count = list.counts[static_cast<size_t>(i)];
    if (count == 0) continue;
    const auto group = static_cast<Group>(i);
    const std::string slug = group_slug(group);
    links += count_link(root + list_file(list.facet_name, slug), group_title(group), count,
                        list.group_slug == slug, "chip " + slug);
  }
  if (list.unfinished > 0) {
    links += count_link(root + list_file(list.facet_name, std::string(kUnfinished)),
                        std::string(kUnfinished), list.unfinished, list.group_slug == kUnfinished,
                        "chip unfinished");
  }
  return element("nav", {{"class", "chips"}, {"aria-label", "Filter by verdict"}}, links);
}

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

std::string list_page(const List& list, const Entries& entries, size_t page, size_t pages,
                      const ReportContext& context) {
  const size_t from = (page - 1) * kListRows;
  const size_t to = std::min(entries.size(), from + kListRows);
  const std::string of_these =
      fmt::format("{} to {} of {}, newest first", entries.empty() ? 0 : from + 1, to,
                  grouped(static_cast<int64_t>(entries.size())));
  Html main = element("h1", list.title);
  main += group_filter(list, "../");
  main += element("p", {{"class", "range"}}, of_these) + pager(list, page, pages);
  main += entries_table(entries, from, to, "../", list.title);
  Document document;
  document.title = fmt::format("{} {}", list.title, list.group_slug);
  document.root = "../";
  document.main = main + pager(list, page, pages);
  document.footer = context.footer;
  return document_text(document);
}

Status make_list(const List& list, const Entries& entries, const ReportContext& context,
                 const TakePage& take) {
  const size_t pages = std::max<size_t>(1, (entries.size() + kListRows - 1) / kListRows);
  for (size_t page = 1; page <= pages; ++page) {
    TRY(take(list_file(list.facet_name, list.group_slug, page),
             list_page(list, entries, page, pages, context)));
  }
  return {};
}

// The list of a facet's value and its cuts by verdict.
Status make_cuts(List list, const Entries& entries, const ReportContext& context,
                 const TakePage& take) {
  list.counts = counts_of(entries);
  list.unfinished = std::count_if(entries.begin(), entries.end(),
                                  [](const Entry* entry) { return is_unfinished(*entry); });
  TRY(make_list(list, entries, context, take));
  for (int i = 0; i <= kGroups; ++i) {
    const bool open = i == kGroups;
    if (open ? list.unfinished == 0 : list.counts[static_cast<size_t>(i)] == 0) continue;
    Entries cut;
    std::copy_if(entries.begin(), entries.end(), std::back_inserter(cut), [&](const Entry* entry) {
      return open ? is_unfinished(*entry) : group_of(*entry) == static_cast<Group>(i);
    });
    list.group_slug = open ? std::string(kUnfinished) : group_slug(static_cast<Group>(i));
    TRY(make_list(list, cut, context, take));
  }
  return {};
}

std::map<std::string, Entries> by_value(Facet facet, const Entries& entries) {
  std::map<std::string, Entries> values;
  for (const Entry* entry : entries) values[facet_value(facet, *entry)].push_back(entry);
  return values;
}

// How a facet's values ended: a row a value, a column a verdict, each number a link.
Html facet_table(Facet facet, const Entries& entries, const Counts& totals,
                 const ReportContext& context) {
  std::vector<HtmlColumn> columns = {{facet_title(facet)}, {"all", true}};
  for (int i = 0; i < kGroups; ++i) {
    if (totals[static_cast<size_t>(i)] > 0) {
      columns.push_back({group_title(static_cast<Group>(i)), true});
    }
  }
  HtmlTable table("Verdicts by " + facet_word(facet), columns, "counts");
  for (const auto& [value, of_value] : by_value(facet, entries)) {
    const std::string& name = context.facets->name(facet, value);
    const Counts counts = counts_of(of_value);
    std::vector<Html> cells = {link(list_file(name, ""), value),
                               html_text(grouped(static_cast<int64_t>(of_value.size())))};
    for (int i = 0; i < kGroups; ++i) {
      const auto at = static_cast<size_t>(i);
      if (totals[at] == 0) continue;
      cells.push_back(counts[at] == 0 ? element("span", {{"class", "zero"}}, "0")
                                      : link(list_file(name, group_slug(static_cast<Group>(i))),
                                             grouped(counts[at])));
    }
    table.add(cells);
  }
  return section("by-" + facet_word(facet), "By " + facet_word(facet), table.html());
}

std::string summary_sentence(const Entries& entries, const Counts& counts, int64_t unfinished) {
  const int64_t reported = counts[static_cast<size_t>(Group::kReported)];
  const int64_t measured = static_cast<int64_t>(entries.size()) - reported;
  std::string text = fmt::format("{} {}: {} measured here", grouped(measured + reported),
                                 entries.size() == 1 ? "entry" : "entries", grouped(measured));
  if (reported > 0) text += fmt::format(", {} reported elsewhere", grouped(reported));
  text += ".";
  if (unfinished > 0) {
    text += fmt::format(" {} {} unfinished: no verdict, no mechanism, or a modified tree.",
                        grouped(unfinished), unfinished == 1 ? "is" : "are");
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
  List all;
  all.title = "All entries";
  TRY(make_cuts(all, entries, context, take));
  for (const Facet facet : kFacets) {
    for (const auto& [value, of_value] : by_value(facet, entries)) {
      List list;
      list.title = facet_title(facet) + ": " + value;
      list.facet_name = context.facets->name(facet, value);
      TRY(make_cuts(list, of_value, context, take));
    }
  }
  return {};
}

std::string index_document(const Entries& entries, const ReportContext& context) {
  const Counts counts = counts_of(entries);
  List all;
  all.counts = counts;
  all.group_slug = "-";  // none is the current one
  all.unfinished = std::count_if(entries.begin(), entries.end(),
                                 [](const Entry* entry) { return is_unfinished(*entry); });
  Html main = element("h1", "Ledger of experiments");
  main += element("p", summary_sentence(entries, counts, all.unfinished));
  if (!entries.empty()) {
    main += group_filter(all, "") + search_form();
    Html newest = entries_table(entries, 0, kNewest, "", "Newest entries");
    if (entries.size() > kNewest) {
      newest += element(
          "p", link(list_file("", ""),
                    fmt::format("All {} entries", grouped(static_cast<int64_t>(entries.size())))));
    }
    main += section("newest", "Newest", newest);
    for (const Facet facet : kFacets) main += facet_table(facet, entries, counts, context);
  }
  Document document;
  document.title = "Ledger of experiments";
  for (const Facet facet : kFacets) {
    if (entries.empty()) break;
    document.navigation += link("#by-" + facet_word(facet), "By " + facet_word(facet));
  }
  document.main = main;
  document.footer = context.footer;
  if (!entries.empty()) document.script = std::string(kSearchScript);
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
