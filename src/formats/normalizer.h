// What a tokenizer does to text before it splits it: steps, one after the other. Const after it
// was built and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

class Normalizer {
 public:
  void add_nfc();  // Unicode normalisation form C (nfc.h)
  void add_prepend(std::string_view text);
  void add_replace(std::string_view from, std::string_view to);  // `from` is not empty
  void add_collapse_spaces();                 // one space for several, none at either end
  void add_strip_end(std::string_view text);  // not empty

  [[nodiscard]] bool empty() const { return steps_.empty(); }
  // `text` is valid UTF-8; empty text stays empty. What a step prepends is left out where the text
  // continues one that was cut.
  enum class Start { kBegins, kContinues };
  [[nodiscard]] std::string apply(std::string_view text, Start start) const;

 private:
  enum class Kind { kNfc, kPrepend, kReplace, kCollapseSpaces, kStripEnd };
  struct Step {
    Kind kind;
    std::string from;
    std::string to;
  };
  std::vector<Step> steps_;
};

// `text` with each occurrence of `from` (not empty) replaced, from left to right.
[[nodiscard]] std::string replace_all(std::string_view text, std::string_view from,
                                      std::string_view to);

}  // namespace reckon
