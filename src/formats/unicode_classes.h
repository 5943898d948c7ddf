// Character classes of the Unicode Character Database, as tokenizers' patterns need them. The
// tables are our own, so that a text has the same tokens on every machine, whatever Unicode
// version its libraries have. Pure.
#pragma once

namespace reckon {

[[nodiscard]] bool is_letter(char32_t code_point);       // \p{L}, Unicode 16, as all others are
[[nodiscard]] bool is_mark(char32_t code_point);         // \p{M}
[[nodiscard]] bool is_number(char32_t code_point);       // \p{N}
[[nodiscard]] bool is_punctuation(char32_t code_point);  // \p{P}
[[nodiscard]] bool is_symbol(char32_t code_point);       // \p{S}
[[nodiscard]] bool is_word(char32_t code_point);         // \w, as UTS #18 defines it
[[nodiscard]] bool is_number_v17(char32_t code_point);   // \p{N}, Unicode 17
[[nodiscard]] bool is_white_space(char32_t code_point);  // \s: property White_Space

}  // namespace reckon
