// The printable alphabet in which byte-level BPE vocabularies are written: each byte is one
// character; bytes that do not print become U+0100, U+0101, ... in order (bytes_to_unicode in
// https://github.com/openai/gpt-2/blob/master/src/encoder.py). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reckon {

[[nodiscard]] std::string byte_to_alphabet(uint8_t byte);  // its character, as UTF-8

// The bytes that a token's text stands for; none where it has a character of no byte.
[[nodiscard]] std::optional<std::string> bytes_from_alphabet(std::string_view text);

}  // namespace reckon
