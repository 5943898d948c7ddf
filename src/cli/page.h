// Labelled text for terminals, wrapped at 100 columns. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon::cli {

inline constexpr size_t kPageColumns = 100;

// Characters, not bytes: continuation bytes of UTF-8 and escape sequences take no column.
[[nodiscard]] size_t display_width(std::string_view text);

// Words of `text` on lines of at most kPageColumns, the second line and later ones indented; a
// longer word stands alone. Spaces at the start stay. No newline at the end.
[[nodiscard]] std::string wrapped(std::string_view text, size_t indent);

// Lines of "label       text".
class Page {
 public:
  void title(std::string_view text);
  void line(std::string_view label, std::string_view text);
  void field(std::string_view label, std::string_view text);  // left out where the text is empty
  void lines(std::string_view label, const std::vector<std::string>& texts);  // labelled once
  void blank() { text_ += '\n'; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace reckon::cli
