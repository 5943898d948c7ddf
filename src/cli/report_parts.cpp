#include "cli/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/check.h"
#include "ledger/event.h"

namespace reckon::cli {
namespace {

constexpr size_t kIdLength = 15;     // "rk-" and 12 characters
constexpr size_t kLongestName = 60;  // of a facet's value in a file name
constexpr std::string_view kNone = "none";

std::string file_word(const std::string& value) {
  std::string word;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) != 0 || c == '_' || c == '.');
    if (plain) {
      word += static_cast<char>(std::tolower(byte));
    } else if (!word.empty() && word.back() != '-') {
      word += '-';
    }
  }
  while (!word.empty() && (word.back() == '-' || word.back() == '.')) word.pop_back();
  return word.substr(0, kLongestName);
}

bool is_address(std::string_view text) {
  return (text.starts_with("https://") || text.starts_with("http://")) &&
         text.find(' ') == std::string_view::npos;
}

}  // namespace

std::string facet_title(Facet facet) {
  switch (facet) {
    case Facet::kSwitch:
      return "Switch";
    case Facet::kModel:
      return "Model";
    case Facet::kDevice:
      return "Device";
  }
  RECKON_CHECK(false);
}

std::string facet_word(Facet facet) {
  std::string word = facet_title(facet);
  word[0] = static_cast<char>(std::tolower(word[0]));
  return word;
}

std::string facet_value(Facet facet, const ledger::Entry& entry) {
  std::string value;
  switch (facet) {
    case Facet::kSwitch:
      value = entry.idea.scope.switch_key;
      if (value.empty() && entry.idea.kind == ledger::EntryKind::kFloor) value = "identical arms";
      break;
    case Facet::kModel:
      value = model_of(entry);
      break;
    case Facet::kDevice:
      value = device_of(entry);
      break;
  }
  return value.empty() ? std::string(kNone) : value;
}

FacetNames::FacetNames(const std::vector<const ledger::Entry*>& entries) {
  for (const Facet facet : kFacets) {
    auto& names = names_[static_cast<size_t>(facet)];
    for (const ledger::Entry* entry : entries) names.emplace(facet_value(facet, *entry), "");
    std::set<std::string> taken;
    for (auto& [value, name] : names) {
      const std::string word = fmt::format("{}-{}", facet_word(facet), file_word(value));
      name = word;
      for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}-{}", word, i);
    }
  }
}

const std::string& FacetNames::name(Facet facet, const std::string& value) const {
  const auto& names = names_[static_cast<size_t>(facet)];
  const auto found = names.find(value);
  RECKON_CHECK(found != names.end());
  return found->second;
}

const std::map<std::string, std::string>& FacetNames::names(Facet facet) const {
  return names_[static_cast<size_t>(facet)];
}

std::string entry_file(const std::string& id) {
  return "entries/" + id + ".html";
}

std::string entry_text_file(const std::string& id) {
  return "entries/" + id + ".txt";
}

std::string list_file(const std::string& facet_name, const std::string& group_slug, size_t page) {
  std::string name = "lists/" + (facet_name.empty() ? "all" : facet_name);
  if (!group_slug.empty()) name += "--" + group_slug;
  if (page > 1) name += fmt::format("--{}", page);
  return name + ".html";
}

Html badge(const ledger::Entry& entry) {
  std::string style = "badge " + group_slug(group_of(entry));
  if (entry.imported) style += " " + file_word(verdict_word(entry));
  return element("span", {{"class", style}}, verdict_word(entry));
}

Html badge_with_marks(const ledger::Entry& entry) {
  Html markup = badge(entry);
  for (const std::string& mark : marks_of(entry)) {
    markup += Html::raw(" ") + element("span", {{"class", "marked"}}, mark);
  }
  return markup;
}

HtmlTable::HtmlTable(std::string label, std::vector<HtmlColumn> columns, std::string style)
    : label_(std::move(label)), columns_(std::move(columns)), style_(std::move(style)) {}

void HtmlTable::add(const std::vector<Html>& cells) {
  RECKON_CHECK(cells.size() == columns_.size());
  Html row;
  for (size_t i = 0; i < cells.size(); ++i) {
    const char* style = columns_[i].number ? "n" : "";
    row += i == 0 ? element("th", {{"scope", "row"}, {"class", style}}, cells[i])
                  : element("td", {{"class", style}}, cells[i]);
  }
  rows_ += element("tr", row);
}

Html HtmlTable::html() const {
  Html head;
  for (const HtmlColumn& column : columns_) {
    head += element("th", {{"scope", "col"}, {"class", column.number ? "n" : ""}}, column.title);
  }
  const Html table = element("table", {{"class", style_}},
                             element("caption", {{"class", "hidden"}}, label_) +
                                 element("thead", element("tr", head)) + element("tbody", rows_));
  return element(
      "div", {{"class", "scroll"}, {"role", "region"}, {"tabindex", "0"}, {"aria-label", label_}},
      table);
}

void HtmlFacts::add(std::string_view label, const Html& value) {
  if (value.empty()) return;
  items_ += element("div", element("dt", label) + element("dd", value));
}

void HtmlFacts::add(std::string_view label, const std::string& value) {
  add(label, html_text(value));
}

Html HtmlFacts::html() const {
  return items_.empty() ? Html() : element("dl", items_);
}

Html section(std::string_view id, std::string_view title, const Html& content) {
  if (content.empty()) return {};
  return element("section", {{"id", id}}, element("h2", title) + content);
}

Html details(std::string_view summary, const Html& content) {
  return element("details", element("summary", summary) + content);
}

Html linked_text(std::string_view text, const ReportContext& context, std::string_view root) {
  if (is_address(text)) {
    return element("a", {{"href", text}, {"rel", "noreferrer"}}, text);
  }
  Html markup;
  size_t done = 0;
  for (size_t at = text.find("rk-"); at != std::string_view::npos; at = text.find("rk-", at + 1)) {
    const std::string id(text.substr(at, kIdLength));
    if (!ledger::is_entry_id(id) || context.shown.count(id) == 0) continue;
    markup += html_text(text.substr(done, at - done)) + entry_link(id, context, root);
    done = at + kIdLength;
  }
  return markup + html_text(text.substr(done));
}

Html entry_link(const std::string& id, const ReportContext& context, std::string_view root) {
  const Html code = element("code", id);
  if (context.shown.count(id) == 0) return code;
  return link(std::string(root) + entry_file(id), code);
}

}  // namespace reckon::cli
