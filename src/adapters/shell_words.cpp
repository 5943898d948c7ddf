#include "adapters/shell_words.h"

#include <algorithm>

namespace reckon::adapters {
namespace {

constexpr std::string_view kEnds = "|&;<>()$`*?\\\n";

bool is_assignment(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// Reads one word from `at`; false where it holds something that only a shell understands.
bool read_word(std::string_view text, size_t& at, ShellWord& word) {
  word.begin = at;
  char quote = '\0';
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote == '\'' ? c == quote : quote == '"' && c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote == '\0' && (c == ' ' || c == '\t')) {
      break;
    } else if (quote != '\'' && kEnds.find(c) != std::string_view::npos) {
      return false;
    } else {
      word.text += c;
    }
  }
  word.end = at;
  return quote == '\0';
}

}  // namespace

std::vector<ShellWord> shell_words(std::string_view command) {
  std::vector<ShellWord> words;
  size_t at = 0;
  while ((at = command.find_first_not_of(" \t", at)) != std::string_view::npos) {
    ShellWord word;
    if (!read_word(command, at, word)) break;
    if (words.empty() && is_assignment(command.substr(word.begin, word.end - word.begin))) continue;
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace reckon::adapters
