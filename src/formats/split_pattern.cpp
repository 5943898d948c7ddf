#include "formats/split_pattern.h"

#include <cstdint>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "formats/unicode_classes.h"

namespace reckon {
namespace {

struct KnownRegex {
  std::string_view regex;
  SplitPattern pattern;
};

// As the checkpoints' tokenizer.json write them, some of which have the line ends themselves
// instead of "\r" and "\n".
constexpr KnownRegex kRegexes[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     SplitPattern::kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     SplitPattern::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::kQwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
     R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::kQwen35},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::kLlama3},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
     R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitPattern::kDeepseekV3},
    {R"(\p{N}{1,3})", SplitPattern::kUpToThreeNumbers},
    {R"(\p{N})", SplitPattern::kNumber},
    {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", SplitPattern::kHanAndKana},
};

constexpr char32_t kLongS = 0x17f;  // folds to "s" where a pattern ignores case

// A text as characters. Positions are indices of characters; size() stands for the end, where
// every class test is false.
class Text {
 public:
  explicit Text(std::string_view bytes) : bytes_(bytes) {
    chars_.reserve(bytes.size());
    for (size_t offset = 0; offset < bytes.size();) {
      const Utf8Char next = decode_utf8(bytes.substr(offset));
      chars_.push_back({offset, next.code_point, classify(next.code_point)});
      offset += next.length;
    }
  }

  [[nodiscard]] size_t size() const { return chars_.size(); }
  [[nodiscard]] char32_t at(size_t i) const { return i < size() ? chars_[i].code_point : 0; }
  [[nodiscard]] bool is_letter(size_t i) const { return is(i, Class::kLetter); }
  [[nodiscard]] bool is_number(size_t i) const { return is(i, Class::kNumber); }
  [[nodiscard]] bool is_space(size_t i) const { return is(i, Class::kSpace); }
  [[nodiscard]] bool is_letter_or_mark(size_t i) const {
    return is(i, Class::kLetter) || is(i, Class::kMark);
  }
  // \p{P} or \p{S}.
  [[nodiscard]] bool is_symbol(size_t i) const {
    return is(i, Class::kPunctuation) || is(i, Class::kSymbol);
  }
  // [^\s\p{L}\p{N}].
  [[nodiscard]] bool is_other(size_t i) const {
    return is_other_than_mark(i) || is(i, Class::kMark);
  }
  // [^\s\p{L}\p{M}\p{N}].
  [[nodiscard]] bool is_other_than_mark(size_t i) const {
    return is_symbol(i) || is(i, Class::kOther);
  }
  [[nodiscard]] bool is_han_or_kana(size_t i) const {
    const char32_t c = at(i);
    return (c >= 0x4e00 && c <= 0x9fa5) || (c >= 0x3040 && c <= 0x30ff);
  }
  [[nodiscard]] bool is_ascii_letter(size_t i) const { return (at(i) | 0x20U) - U'a' < 26; }
  [[nodiscard]] bool is_digit(size_t i) const { return at(i) - U'0' < 10; }
  // [\p{P}\$\+<=>\^~\|].
  [[nodiscard]] bool is_punctuation_or_sign(size_t i) const {
    constexpr std::u32string_view kSigns = U"$+<=>^~|";
    return is(i, Class::kPunctuation) || (i < size() && kSigns.find(at(i)) != kSigns.npos);
  }
  [[nodiscard]] bool is_newline(size_t i) const { return at(i) == U'\r' || at(i) == U'\n'; }

  [[nodiscard]] std::string_view bytes(size_t begin, size_t end) const {
    return bytes_.substr(offset(begin), offset(end) - offset(begin));
  }

  // The end of the run of characters from `i` on that satisfy the test.
  [[nodiscard]] size_t run(size_t i, bool (Text::*test)(size_t) const) const {
    while ((this->*test)(i)) ++i;
    return i;
  }

 private:
  enum class Class : uint8_t { kLetter, kMark, kNumber, kPunctuation, kSpace, kSymbol, kOther };
  struct Char {
    size_t offset;
    char32_t code_point;
    Class kind;
  };

  static Class classify(char32_t c) {
    if (reckon::is_letter(c)) return Class::kLetter;
    if (reckon::is_number(c)) return Class::kNumber;
    if (is_white_space(c)) return Class::kSpace;
    if (reckon::is_mark(c)) return Class::kMark;
    if (reckon::is_punctuation(c)) return Class::kPunctuation;
    return reckon::is_symbol(c) ? Class::kSymbol : Class::kOther;
  }

  [[nodiscard]] bool is(size_t i, Class kind) const { return i < size() && chars_[i].kind == kind; }
  [[nodiscard]] size_t offset(size_t i) const {
    return i < size() ? chars_[i].offset : bytes_.size();
  }

  std::string_view bytes_;
  std::vector<Char> chars_;
};

enum class Case { kExact, kIgnore };

// 's|'t|'re|'ve|'m|'ll|'d at `i`: how many characters, 0 where none of them is there.
size_t contraction(const Text& text, size_t i, Case letters) {
  if (text.at(i) != U'\'') return 0;
  const auto letter = [&](size_t at) -> char32_t {
    const char32_t c = text.at(at);
    if (letters == Case::kExact) return c;
    if (c == kLongS) return U's';
    return c >= U'A' && c <= U'Z' ? c + (U'a' - U'A') : c;
  };
  const char32_t first = letter(i + 1);
  const char32_t second = letter(i + 2);
  if (first == U's' || first == U't' || first == U'm' || first == U'd') return 2;
  const bool two = (first == U'r' && second == U'e') || (first == U'v' && second == U'e') ||
                   (first == U'l' && second == U'l');
  return two ? 3 : 0;
}

// \s+(?!\S)|\s+ at the white space `i`: the run, without its last character where something else
// follows and the run is longer than that.
size_t white_space_end(const Text& text, size_t i) {
  const size_t end = text.run(i, &Text::is_space);
  return end == text.size() || end == i + 1 ? end : end - 1;
}

size_t gpt2_end(const Text& text, size_t i) {
  if (const size_t length = contraction(text, i, Case::kExact)) return i + length;
  const size_t start = text.at(i) == U' ' ? i + 1 : i;
  for (const auto test : {&Text::is_letter, &Text::is_number, &Text::is_other}) {
    if ((text.*test)(start)) return text.run(start, test);
  }
  return white_space_end(text, i);
}

// Behind the last newline of the white space run at `i`; `i` where there is none.
size_t behind_last_newline(const Text& text, size_t i) {
  size_t end = i;
  for (size_t at = i; text.is_space(at); ++at) {
    if (text.is_newline(at)) end = at + 1;
  }
  return end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+; `i` where there is no white space.
size_t lines_and_spaces_end(const Text& text, size_t i) {
  if (!text.is_space(i)) return i;
  const size_t line_end = behind_last_newline(text, i);
  return line_end > i ? line_end : white_space_end(text, i);
}

// At most `limit` numbers from `i` on.
size_t numbers_end(const Text& text, size_t i, size_t limit) {
  size_t end = i;
  while (end < i + limit && text.is_number(end)) ++end;
  return end;
}

using CharTest = bool (Text::*)(size_t) const;

// What the patterns of Qwen and Llama 3 differ in.
struct WordRules {
  CharTest letter;
  CharTest symbol;
  size_t numbers;  // in one piece
};
constexpr WordRules kQwen2Rules{&Text::is_letter, &Text::is_other, 1};
constexpr WordRules kQwen35Rules{&Text::is_letter_or_mark, &Text::is_other_than_mark, 1};
constexpr WordRules kLlama3Rules{&Text::is_letter, &Text::is_other, 3};

// `prefix?letter+` at `i`, where `prefix` says whether the character at `i` may stand before the
// letters (it may be one of them, too); `i` where that does not match.
size_t prefixed_letters_end(const Text& text, size_t i, bool prefix, CharTest letter) {
  if (prefix && (text.*letter)(i + 1)) return text.run(i + 1, letter);
  return text.run(i, letter);
}

size_t words_end(const Text& text, size_t i, const WordRules& rules) {
  if (const size_t length = contraction(text, i, Case::kIgnore)) return i + length;
  const bool prefix = !text.is_newline(i) && !text.is_letter(i) && !text.is_number(i);
  const size_t letters = prefixed_letters_end(text, i, prefix, rules.letter);
  if (letters > i) return letters;
  if (text.is_number(i)) return numbers_end(text, i, rules.numbers);
  const size_t symbols = text.at(i) == U' ' ? i + 1 : i;
  if ((text.*rules.symbol)(symbols)) {
    return text.run(text.run(symbols, rules.symbol), &Text::is_newline);
  }
  return lines_and_spaces_end(text, i);
}

size_t deepseek_v3_end(const Text& text, size_t i) {
  const bool ascii_symbol = text.at(i) < 0x80 && text.is_symbol(i);
  if (ascii_symbol && text.is_ascii_letter(i + 1)) return text.run(i + 1, &Text::is_ascii_letter);
  const bool prefix = !text.is_newline(i) && !text.is_letter(i) && !text.is_symbol(i);
  const size_t letters = prefixed_letters_end(text, i, prefix, &Text::is_letter_or_mark);
  if (letters > i) return letters;
  const size_t symbols = text.at(i) == U' ' ? i + 1 : i;
  if (text.is_symbol(symbols)) {
    return text.run(text.run(symbols, &Text::is_symbol), &Text::is_newline);
  }
  return lines_and_spaces_end(text, i);
}

// The end of the match at `i`, or `i` where there is none.
size_t match_end(SplitPattern pattern, const Text& text, size_t i) {
  switch (pattern) {
    case SplitPattern::kGpt2:
      return gpt2_end(text, i);
    case SplitPattern::kQwen2:
      return words_end(text, i, kQwen2Rules);
    case SplitPattern::kQwen35:
      return words_end(text, i, kQwen35Rules);
    case SplitPattern::kLlama3:
      return words_end(text, i, kLlama3Rules);
    case SplitPattern::kDeepseekV3:
      return deepseek_v3_end(text, i);
    case SplitPattern::kUpToThreeNumbers:
      return numbers_end(text, i, 3);
    case SplitPattern::kNumber:
      return numbers_end(text, i, 1);
    case SplitPattern::kNumbers:
      return text.run(i, &Text::is_number);
    case SplitPattern::kThreeDigits:
      return text.is_digit(i) && text.is_digit(i + 1) && text.is_digit(i + 2) ? i + 3 : i;
    case SplitPattern::kPunctuation:
      return text.run(i, &Text::is_punctuation_or_sign);
    case SplitPattern::kHanAndKana:
      return text.run(i, &Text::is_han_or_kana);
  }
  return i;
}

}  // namespace

std::optional<SplitPattern> split_pattern_from_regex(std::string_view regex) {
  std::string spelled;
  for (const char c : regex) {
    if (c == '\r' || c == '\n') {
      spelled += c == '\r' ? "\\r" : "\\n";
    } else {
      spelled += c;
    }
  }
  for (const KnownRegex& known : kRegexes) {
    if (known.regex == spelled) return known.pattern;
  }
  return std::nullopt;
}

bool covers_everything(SplitPattern pattern) {
  return pattern == SplitPattern::kGpt2 || pattern == SplitPattern::kQwen2 ||
         pattern == SplitPattern::kQwen35 || pattern == SplitPattern::kLlama3;
}

void split_by_pattern(SplitPattern pattern, std::string_view bytes, const PieceSink& piece) {
  const Text text(bytes);
  size_t gap = 0;  // where what no match has taken begins
  for (size_t at = 0; at < text.size();) {
    const size_t end = match_end(pattern, text, at);
    if (end == at) {
      ++at;
      continue;
    }
    if (gap < at) piece(text.bytes(gap, at));
    piece(text.bytes(at, end));
    gap = at = end;
  }
  if (gap < text.size()) piece(text.bytes(gap, text.size()));
}

}  // namespace reckon
