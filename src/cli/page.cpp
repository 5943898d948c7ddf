#include "cli/page.h"

#include <algorithm>

#include "base/text.h"

namespace reckon::cli {
namespace {

constexpr size_t kLabelWidth = 14;

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\033') escape = true;
    if (!escape && (static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++width;
    if (c == 'm') escape = false;
  }
  return width;
}

std::string wrapped(std::string_view text, size_t indent) {
  const size_t start = std::min(text.find_first_not_of(' '), text.size());
  std::string result(text.substr(0, start));
  size_t column = start;
  bool fresh = true;  // no word on this line yet
  for (const std::string& word : split(text.substr(start), ' ')) {
    const size_t width = display_width(word);
    if (!fresh && column + 1 + width > kPageColumns) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!fresh) {
      result += ' ';
      ++column;
    }
    result += word;
    column += width;
    fresh = false;
  }
  return result;
}

void Page::title(std::string_view text) {
  text_ += wrapped(text, 0) + '\n';
}

void Page::line(std::string_view label, std::string_view text) {
  const size_t width = display_width(label);
  std::string labelled(label);
  if (!text.empty()) {
    labelled.append(width < kLabelWidth ? kLabelWidth - width : 1, ' ');
    labelled += text;
  }
  text_ += wrapped(labelled, kLabelWidth) + '\n';
}

void Page::field(std::string_view label, std::string_view text) {
  if (!text.empty()) line(label, one_line(text));
}

void Page::lines(std::string_view label, const std::vector<std::string>& texts) {
  for (size_t i = 0; i < texts.size(); ++i) line(i == 0 ? label : "", one_line(texts[i]));
}

}  // namespace reckon::cli
