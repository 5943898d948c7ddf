// Unicode normalisation form C (UAX #15), which some tokenizers apply before they split words.
// By Unicode 9, as Hugging Face tokenizers does it, from tables of our own (see unicode_classes.h):
// characters that came later stay as they are. Pure.
#pragma once

#include <string>
#include <string_view>

namespace reckon {

// `text` is valid UTF-8.
[[nodiscard]] std::string nfc(std::string_view text);
// False only where nfc(text) may differ from text; a quick check of the bytes.
[[nodiscard]] bool is_surely_nfc(std::string_view text);

}  // namespace reckon
