#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace reckon::cli {
namespace {

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string_view code(Style style) {
  switch (style) {
    case Style::kPlain:
      return "0";
    case Style::kBold:
      return "1";
    case Style::kGood:
      return "1;32";
    case Style::kBad:
      return "1;31";
    case Style::kDim:
      return "2";
  }
  return "0";
}

}  // namespace

bool has_style(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  if (term != nullptr && std::strcmp(term, "dumb") == 0) return false;
  return is_terminal(stream);
}

std::string styled(std::string_view text, Style style, std::FILE* stream) {
  if (style == Style::kPlain || !has_style(stream)) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code(style), text);
}

StatusLine::StatusLine() : enabled_(is_terminal(stderr)) {}

StatusLine::~StatusLine() {
  clear();
}

void StatusLine::show(const std::string& text) {
  if (!enabled_ || (shown_ && text == text_)) return;
  text_ = text;
  // Bytes for columns: a status line is plain ASCII but for what a user named.
  fmt::print(stderr, "\r{}\033[K", text.substr(0, terminal_columns() - 1));
  std::fflush(stderr);
  shown_ = true;
}

void StatusLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace reckon::cli
