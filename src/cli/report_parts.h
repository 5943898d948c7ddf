// What several pages of the report are made of. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cli/report_html.h"
#include "cli/report_model.h"
#include "ledger/chain.h"

namespace reckon::cli {

// The three questions that lists are cut by, beside the verdict.
enum class Facet { kSwitch, kModel, kDevice };
inline constexpr Facet kFacets[] = {Facet::kSwitch, Facet::kModel, Facet::kDevice};

[[nodiscard]] std::string facet_title(Facet facet);  // "Switch"
[[nodiscard]] std::string facet_word(Facet facet);   // "switch"
// The entry's answer; "none" where it has none.
[[nodiscard]] std::string facet_value(Facet facet, const ledger::Entry& entry);

// Names of files for the values of facets: lower-case letters, digits, '.', '_' and '-', never two
// the same. The same values give the same names.
class FacetNames {
 public:
  explicit FacetNames(const std::vector<const ledger::Entry*>& entries);
  // A value that one of the entries has.
  [[nodiscard]] const std::string& name(Facet facet, const std::string& value) const;
  // By name of the file's value, sorted by value.
  [[nodiscard]] const std::map<std::string, std::string>& names(Facet facet) const;

 private:
  std::map<std::string, std::string> names_[3];
};

// What every page of one report shares.
struct ReportContext {
  std::unordered_map<std::string, const ledger::Entry*> entries;  // by id, all of the ledger
  const ledger::Chains* chains = nullptr;
  const FacetNames* facets = nullptr;
  std::unordered_set<std::string> shown;  // ids of entries that have a page
  Metrics metrics;
  std::string ledger;  // --ledger as it may be shown (ledger/open.h); "": the default one
  std::string footer;
};

[[nodiscard]] std::string entry_file(const std::string& id);  // in the report's folder
[[nodiscard]] std::string entry_text_file(const std::string& id);
// The first page of a list, in the report's folder. group_slug "": every group.
[[nodiscard]] std::string list_file(const std::string& facet_name, const std::string& group_slug,
                                    size_t page = 1);

// The verdict as a word in its group's style, with the marks beside it.
[[nodiscard]] Html badge(const ledger::Entry& entry);
[[nodiscard]] Html badge_with_marks(const ledger::Entry& entry);

// A table whose first column heads its rows, in a box that scrolls where it is too wide.
struct HtmlColumn {
  std::string title;
  bool number = false;
};
class HtmlTable {
 public:
  HtmlTable(std::string label, std::vector<HtmlColumn> columns, std::string style = "");
  void add(const std::vector<Html>& cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] Html html() const;

 private:
  std::string label_;
  std::vector<HtmlColumn> columns_;
  std::string style_;
  Html rows_;
};

// Labels and what they say.
class HtmlFacts {
 public:
  void add(std::string_view label, const Html& value);         // left out where empty
  void add(std::string_view label, const std::string& value);  // the same
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] Html html() const;

 private:
  Html items_;
};

[[nodiscard]] Html section(std::string_view id, std::string_view title, const Html& content);
[[nodiscard]] Html details(std::string_view summary, const Html& content);

// Text in which ids of entries that have a page are links, and a text that is an address as a whole
// as well. `root` as Document::root.
[[nodiscard]] Html linked_text(std::string_view text, const ReportContext& context,
                               std::string_view root);
// "rk-…" with a link where it has a page.
[[nodiscard]] Html entry_link(const std::string& id, const ReportContext& context,
                              std::string_view root);

}  // namespace reckon::cli
