#include "formats/nfc.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/utf8.h"
#include "formats/unicode_tables.h"

namespace reckon {
namespace {

// Hangul syllables are composed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSyllableBase = 0xac00;
constexpr char32_t kLeadBase = 0x1100;
constexpr char32_t kVowelBase = 0x1161;
constexpr char32_t kTailBase = 0x11a7;
constexpr char32_t kLeads = 19;
constexpr char32_t kVowels = 21;
constexpr char32_t kTails = 28;
constexpr char32_t kSyllables = kLeads * kVowels * kTails;

struct Char {
  char32_t code_point;
  uint8_t combining_class;
};

uint8_t combining_class(char32_t c) {
  const auto* after = std::upper_bound(
      std::begin(kCombiningClasses), std::end(kCombiningClasses), c,
      [](char32_t value, const CombiningClassRange& range) { return value < range.first; });
  if (after == std::begin(kCombiningClasses)) return 0;
  const CombiningClassRange& range = *std::prev(after);
  return c <= range.last ? range.combining_class : uint8_t{0};
}

void decompose(char32_t c, std::vector<Char>& out) {
  if (c < 0xc0) {
    out.push_back({c, 0});
    return;
  }
  if (c - kSyllableBase < kSyllables) {
    const char32_t index = c - kSyllableBase;
    out.push_back({kLeadBase + index / (kVowels * kTails), 0});
    out.push_back({kVowelBase + index / kTails % kVowels, 0});
    if (index % kTails != 0) out.push_back({kTailBase + index % kTails, 0});
    return;
  }
  const auto* found = std::lower_bound(
      std::begin(kDecompositions), std::end(kDecompositions), c,
      [](const Decomposition& row, char32_t value) { return row.character < value; });
  if (found == std::end(kDecompositions) || found->character != c) {
    out.push_back({c, combining_class(c)});
    return;
  }
  decompose(found->first, out);
  if (found->second != 0) decompose(found->second, out);
}

// Sorts each run of combining characters by class, keeping the order of equal ones.
void order(std::vector<Char>& chars) {
  const auto is_starter = [](const Char& c) { return c.combining_class == 0; };
  auto begin = chars.begin();
  while (begin != chars.end()) {
    begin = std::find_if_not(begin, chars.end(), is_starter);
    const auto end = std::find_if(begin, chars.end(), is_starter);
    std::stable_sort(begin, end, [](const Char& a, const Char& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end;
  }
}

// The character that a and b compose, or 0.
char32_t composed(char32_t a, char32_t b) {
  if (a - kLeadBase < kLeads && b - kVowelBase < kVowels) {
    return kSyllableBase + ((a - kLeadBase) * kVowels + (b - kVowelBase)) * kTails;
  }
  const bool open_syllable = a - kSyllableBase < kSyllables && (a - kSyllableBase) % kTails == 0;
  if (open_syllable && b > kTailBase && b - kTailBase < kTails) return a + (b - kTailBase);
  const auto* found =
      std::lower_bound(std::begin(kCompositions), std::end(kCompositions), std::pair(a, b),
                       [](const Composition& row, const std::pair<char32_t, char32_t>& pair) {
                         return std::pair(row.first, row.second) < pair;
                       });
  const bool matches = found != std::end(kCompositions) && found->first == a && found->second == b;
  return matches ? found->character : 0;
}

// Composes each character with the last starter unless something between them blocks it: a kept
// character of the same or a higher class, or any kept one for a starter.
void compose(std::vector<Char>& chars) {
  size_t kept = 0;
  size_t starter = 0;
  bool has_starter = false;
  for (const Char& c : chars) {
    const bool adjacent = has_starter && kept == starter + 1;
    const bool open = adjacent || (has_starter && c.combining_class != 0 &&
                                   chars[kept - 1].combining_class < c.combining_class);
    if (open) {
      if (const char32_t whole = composed(chars[starter].code_point, c.code_point)) {
        chars[starter].code_point = whole;
        continue;
      }
    }
    if (c.combining_class == 0) {
      starter = kept;
      has_starter = true;
    }
    chars[kept++] = c;
  }
  chars.resize(kept);
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
  // Nothing below U+0300, whose lead byte is CC, composes with anything below it.
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0xcc; });
}

std::string nfc(std::string_view text) {
  if (is_surely_nfc(text)) return std::string(text);
  std::vector<Char> chars;
  chars.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char next = decode_utf8(text);
    decompose(next.code_point, chars);
    text.remove_prefix(next.length);
  }
  order(chars);
  compose(chars);
  std::string out;
  for (const Char& c : chars) append_utf8(c.code_point, out);
  return out;
}

}  // namespace reckon
