// Character classes of the Unicode Character Database, as tokenizers' patterns need them. The
// tables are our own, so that a text has the same tokens on every machine, whatever Unicode
// version its libraries have. Pure.
#pragma once

namespace reckon {

[[nodiscard]] bool is_letter(char32_t code_point);       // \p{L}, Unicode 16
[[nodiscard]] bool is_number(char32_t code_point);       // \p{N}, Unicode 16
[[nodiscard]] bool is_number_v17(char32_t code_point);   // \p{N}, Unicode 17
[[nodiscard]] bool is_white_space(char32_t code_point);  // \s: property White_Space

}  // namespace reckon
