#include "formats/pretokenizer.h"

#include <cstdint>
#include <vector>

#include "base/utf8.h"
#include "formats/nfc.h"
#include "formats/unicode_classes.h"

namespace reckon {
namespace {

struct Name {
  std::string_view name;
  PreTokenizer kind;
};

constexpr Name kNames[] = {
    {"default", PreTokenizer::kGpt2},
    {"gpt-2", PreTokenizer::kGpt2},
    {"qwen2", PreTokenizer::kQwen2},
    {"smollm", PreTokenizer::kSmollm},
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
  [[nodiscard]] bool is_other(size_t i) const { return is(i, Class::kOther); }
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
  enum class Class : uint8_t { kLetter, kNumber, kSpace, kOther };
  struct Char {
    size_t offset;
    char32_t code_point;
    Class kind;
  };

  static Class classify(char32_t c) {
    if (reckon::is_letter(c)) return Class::kLetter;
    if (reckon::is_number(c)) return Class::kNumber;
    return is_white_space(c) ? Class::kSpace : Class::kOther;
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

size_t qwen2_end(const Text& text, size_t i) {
  if (const size_t length = contraction(text, i, Case::kIgnore)) return i + length;
  const bool prefix = !text.is_newline(i) && !text.is_letter(i) && !text.is_number(i);
  const size_t start = prefix ? i + 1 : i;
  if (text.is_letter(start)) return text.run(start, &Text::is_letter);
  if (text.is_number(i)) return i + 1;
  const size_t symbols = text.at(i) == U' ' ? i + 1 : i;
  if (text.is_other(symbols)) {
    return text.run(text.run(symbols, &Text::is_other), &Text::is_newline);
  }
  const size_t line_end = behind_last_newline(text, i);
  return line_end > i ? line_end : white_space_end(text, i);
}

void split_gpt2(std::string_view bytes, const std::function<void(std::string_view)>& word) {
  const Text text(bytes);
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = gpt2_end(text, begin);
    word(text.bytes(begin, end));
  }
}

void split_smollm(std::string_view bytes, const std::function<void(std::string_view)>& word) {
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Char next = decode_utf8(bytes.substr(at));
    if (is_number_v17(next.code_point)) {
      split_gpt2(bytes.substr(begin, at - begin), word);
      word(bytes.substr(at, next.length));
      begin = at + next.length;
    }
    at += next.length;
  }
  split_gpt2(bytes.substr(begin), word);
}

void split_qwen2(std::string_view bytes, const std::function<void(std::string_view)>& word) {
  const std::string normal = nfc(bytes);
  const Text text(normal);
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = qwen2_end(text, begin);
    word(text.bytes(begin, end));
  }
}

}  // namespace

std::optional<PreTokenizer> pre_tokenizer_from_name(std::string_view name) {
  for (const Name& known : kNames) {
    if (known.name == name) return known.kind;
  }
  return std::nullopt;
}

std::string pre_tokenizer_names() {
  std::string names;
  for (const Name& known : kNames) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

void split_words(PreTokenizer kind, std::string_view text,
                 const std::function<void(std::string_view)>& word) {
  switch (kind) {
    case PreTokenizer::kGpt2:
      return split_gpt2(text, word);
    case PreTokenizer::kSmollm:
      return split_smollm(text, word);
    case PreTokenizer::kQwen2:
      return split_qwen2(text, word);
  }
}

}  // namespace reckon
