// Terminal manners: style only where a person looks at it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace reckon::cli {

enum class Style { kPlain, kBold, kGood, kBad, kDim };

// The stream is a terminal and the user has not asked for plain text (https://no-color.org, or
// TERM=dumb).
[[nodiscard]] bool has_style(std::FILE* stream);

// The text with its style where has_style(stream), else unchanged.
[[nodiscard]] std::string styled(std::string_view text, Style style, std::FILE* stream);

// One line on stderr that is written over by the next; silent where stderr is not a terminal.
// Not thread-safe.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Cut to the terminal's width; what stands there already is not drawn again.
  void show(const std::string& text);
  void clear();

 private:
  bool enabled_;
  bool shown_ = false;
  std::string text_;  // shown last
};

}  // namespace reckon::cli
