// Text that may come from anywhere, made fit for the ledger. Pure and thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reckon::experiment {

// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
[[nodiscard]] bool valid_utf8(std::string_view text);

// The same text on one line: line ends and other control characters become spaces, bytes that are
// not UTF-8 become U+FFFD.
[[nodiscard]] std::string one_line(std::string_view text);

// At most `bytes` bytes of well-formed `text`, cut between characters, with "…" where it was cut.
[[nodiscard]] std::string shorten(std::string_view text, size_t bytes);

}  // namespace reckon::experiment
