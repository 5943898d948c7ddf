// Strict UTF-8 decoding (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above
// U+10FFFF). Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reckon {

enum class Utf8Status {
  kValid,       // one character of `length` bytes
  kIncomplete,  // all `length` bytes that remain could begin a character
  kInvalid,     // `length` bytes (at least 1) that no continuation makes valid: the maximal part
};

struct Utf8Char {
  Utf8Status status = Utf8Status::kInvalid;
  char32_t code_point = 0;  // where valid
  size_t length = 0;
};

// The character at the start of `text`, which is not empty.
[[nodiscard]] Utf8Char decode_utf8(std::string_view text);

// The length of the longest prefix of `text` that is valid UTF-8.
[[nodiscard]] size_t valid_utf8_prefix(std::string_view text);
[[nodiscard]] bool valid_utf8(std::string_view text);

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

void append_utf8(char32_t code_point, std::string& text);

}  // namespace reckon
