// The first words of a shell command, as far as they can be told without running a shell. Pure and
// thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::adapters {

struct ShellWord {
  size_t begin = 0, end = 0;  // where it stands, quotes included
  std::string text;           // without its quotes
};

// The program and the arguments that follow it: assignments before it are left out, and the words
// end at the first of | & ; < > ( ) $ ` * ? \ or line end outside single quotes.
[[nodiscard]] std::vector<ShellWord> shell_words(std::string_view command);

}  // namespace reckon::adapters
