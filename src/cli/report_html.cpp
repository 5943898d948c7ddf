#include "cli/report_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/report_style.h"

namespace reckon::cli {
namespace {

void append_escaped(std::string_view text, std::string& markup) {
  for (const char c : text) {
    switch (c) {
      case '&':
        markup += "&amp;";
        break;
      case '<':
        markup += "&lt;";
        break;
      case '>':
        markup += "&gt;";
        break;
      case '"':
        markup += "&quot;";
        break;
      case '\'':
        markup += "&#39;";
        break;
      default:
        markup += c;
    }
  }
}

// Most text is printable ASCII, which one_line() would leave as it is.
void append_text(std::string_view text, std::string& markup) {
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
  if (plain) {
    append_escaped(text, markup);
  } else {
    append_escaped(one_line(text), markup);
  }
}

std::string start_tag(std::string_view tag, std::initializer_list<Attribute> attributes) {
  std::string markup = "<";
  markup += tag;
  for (const Attribute& attribute : attributes) {
    if (attribute.value.empty()) continue;
    markup += ' ';
    markup += attribute.name;
    markup += "=\"";
    append_text(attribute.value, markup);
    markup += '"';
  }
  return markup;
}

// Nothing is loaded from anywhere but the report's own folder.
std::string content_policy(bool script) {
  return fmt::format("default-src 'none'; style-src 'unsafe-inline'{}",
                     script ? "; script-src 'self' file: 'unsafe-inline'" : "");
}

Html head_of(const Document& document) {
  Html inside = empty_element("meta", {{"charset", "utf-8"}});
  inside += empty_element(
      "meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  inside += empty_element("meta", {{"http-equiv", "Content-Security-Policy"},
                                   {"content", content_policy(!document.script.empty())}});
  inside += empty_element("meta", {{"name", "color-scheme"}, {"content", "light dark"}});
  inside += element("title", document.title);
  return inside + element("style", Html::raw(std::string(kReportStyle)));
}

Html body_of(const Document& document) {
  Html inside = element("a", {{"class", "skip"}, {"href", "#main"}}, "Skip to the content");
  Html bar =
      element("a", {{"class", "home"}, {"href", document.root + "index.html"}}, "Reckon ledger");
  bar += document.navigation;
  inside += element("header", element("nav", {{"aria-label", "Where this page is"}}, bar));
  inside += element("main", {{"id", "main"}}, document.main);
  inside += element("footer", element("p", document.footer));
  if (!document.script.empty()) inside += element("script", Html::raw(document.script));
  return inside;
}

}  // namespace

Html operator+(Html first, const Html& second) {
  first += second;
  return first;
}

Html html_text(std::string_view text) {
  std::string markup;
  append_text(text, markup);
  return Html::raw(std::move(markup));
}

Html html_lines(std::string_view text) {
  Html lines;
  bool first = true;
  for (const std::string& line : split(text, '\n')) {
    if (!first) lines += Html::raw("\n");
    lines += html_text(line);
    first = false;
  }
  return lines;
}

Html element(std::string_view tag, std::initializer_list<Attribute> attributes,
             const Html& content) {
  std::string markup = start_tag(tag, attributes);
  markup.reserve(markup.size() + content.markup().size() + tag.size() + 4);
  markup += '>';
  markup += content.markup();
  markup += "</";
  markup += tag;
  markup += '>';
  return Html::raw(std::move(markup));
}

Html element(std::string_view tag, const Html& content) {
  return element(tag, {}, content);
}

Html element(std::string_view tag, std::initializer_list<Attribute> attributes,
             std::string_view text) {
  return element(tag, attributes, html_text(text));
}

Html element(std::string_view tag, std::string_view text) {
  return element(tag, {}, html_text(text));
}

Html empty_element(std::string_view tag, std::initializer_list<Attribute> attributes) {
  return Html::raw(start_tag(tag, attributes) + "/>");
}

Html link(std::string_view target, const Html& content) {
  return element("a", {{"href", target}}, content);
}

Html link(std::string_view target, std::string_view text) {
  return link(target, html_text(text));
}

std::string document_text(const Document& document) {
  const Html page =
      element("html", {{"lang", "en"}},
              element("head", head_of(document)) + element("body", body_of(document)));
  return "<!DOCTYPE html>\n" + page.markup() + "\n";
}

}  // namespace reckon::cli
