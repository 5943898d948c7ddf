#include "formats/unicode_classes.h"

#include <algorithm>
#include <span>

#include "formats/unicode_tables.h"

namespace reckon {
namespace {

bool contains(std::span<const CodePointRange> ranges, char32_t code_point) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), code_point,
      [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

}  // namespace

bool is_letter(char32_t code_point) {
  if (code_point < 0x80) return (code_point | 0x20U) - U'a' < 26;
  return contains(kLetterRanges, code_point);
}

bool is_mark(char32_t code_point) {
  return code_point >= 0x80 && contains(kMarkRanges, code_point);
}

bool is_number(char32_t code_point) {
  if (code_point < 0x80) return code_point - U'0' < 10;
  return contains(kNumberRanges, code_point);
}

bool is_number_v17(char32_t code_point) {
  return is_number(code_point) || contains(kNumberRangesNewIn17, code_point);
}

bool is_punctuation(char32_t code_point) {
  return contains(kPunctuationRanges, code_point);
}

bool is_symbol(char32_t code_point) {
  return contains(kSymbolRanges, code_point);
}

bool is_word(char32_t code_point) {
  return contains(kWordRanges, code_point);
}

bool is_white_space(char32_t code_point) {
  if (code_point < 0x80) return code_point == U' ' || code_point - U'\t' < 5;
  return code_point == 0x85 || code_point == 0xa0 || code_point == 0x1680 ||
         code_point - 0x2000 < 11 || code_point == 0x2028 || code_point == 0x2029 ||
         code_point == 0x202f || code_point == 0x205f || code_point == 0x3000;
}

}  // namespace reckon
