// Markup that cannot be forgotten to escape: text becomes Html by html_text() alone. What comes out
// is also well-formed XML (every element closed, every attribute quoted). Pure.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace reckon::cli {

class Html {
 public:
  Html() = default;
  // Markup as it is: for constants of this program and what was escaped before.
  [[nodiscard]] static Html raw(std::string markup) { return Html(std::move(markup)); }

  Html& operator+=(const Html& more) {
    markup_ += more.markup_;
    return *this;
  }
  [[nodiscard]] const std::string& markup() const { return markup_; }
  [[nodiscard]] bool empty() const { return markup_.empty(); }

 private:
  explicit Html(std::string markup) : markup_(std::move(markup)) {}
  std::string markup_;
};

[[nodiscard]] Html operator+(Html first, const Html& second);

// Text on one line. Bytes that are no character, and control characters, are shown as \x1b.
[[nodiscard]] Html html_text(std::string_view text);
// Text that keeps its lines, for <pre>.
[[nodiscard]] Html html_lines(std::string_view text);

// Left out where the value is empty.
struct Attribute {
  std::string_view name;
  std::string_view value;
};

[[nodiscard]] Html element(std::string_view tag, std::initializer_list<Attribute> attributes,
                           const Html& content);
[[nodiscard]] Html element(std::string_view tag, const Html& content);
// The same around text.
[[nodiscard]] Html element(std::string_view tag, std::initializer_list<Attribute> attributes,
                           std::string_view text);
[[nodiscard]] Html element(std::string_view tag, std::string_view text);
// Without content: <meta/>, <circle/>.
[[nodiscard]] Html empty_element(std::string_view tag, std::initializer_list<Attribute> attributes);

[[nodiscard]] Html link(std::string_view target, const Html& content);
[[nodiscard]] Html link(std::string_view target, std::string_view text);

// A whole page.
struct Document {
  std::string title;
  std::string root;  // the way from the page to the report's folder: "" or "../"
  Html navigation;   // of this page, beside the link to the index
  Html main;
  std::string footer;
  std::string script;  // "": the page has none
};
[[nodiscard]] std::string document_text(const Document& document);

}  // namespace reckon::cli
