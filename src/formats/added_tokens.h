// Tokens that are found in a text as a whole, before anything splits it ("<|im_start|>"), by the
// rules of Hugging Face tokenizers' added tokens: from left to right, the longest at each place.
// Const after finish() and thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/normalizer.h"
#include "formats/text_finder.h"

namespace reckon {

struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool special = false;      // a control token: plain text where the caller says so
  bool normalized = false;   // found in the normalised text, by its own normal form
  bool single_word = false;  // only where no word character (\w) stands beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
};

// Whether control tokens count.
enum class Special {
  kParse,   // the text of a control token is that token
  kIgnore,  // it is plain text
};

class AddedTokens {
 public:
  // Of tokens with equal text the one added first counts; one without text is never found.
  void add(AddedToken token) { tokens_.push_back(std::move(token)); }
  void finish(const Normalizer& normalizer);  // once, before any look-up

  enum class Form { kRaw, kNormalized };  // which tokens to look for, and what `text` is
  // Calls plain(part) for what lies between tokens (never empty) and token(id) for each token.
  void split(std::string_view text, Form form, Special special,
             const std::function<void(std::string_view)>& plain,
             const std::function<void(int32_t)>& token) const;

  [[nodiscard]] const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  std::vector<AddedToken> tokens_;
  TextFinder raw_;         // the values are indices of tokens_
  TextFinder normalized_;  // likewise
};

}  // namespace reckon
