// Byte sizes as people write and read them. GB is 10^9 and GiB is 2^30, never the same thing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

// "96GiB", "512MB", "1.5GiB", "4096" (bytes). Negative, empty, unknown units and sizes of 2^63
// bytes or more are usage errors that name the text.
[[nodiscard]] Result<uint64_t> parse_bytes(std::string_view text);

// A limit: parse_bytes, or "75%" of `whole` (0 < percent <= 100).
[[nodiscard]] Result<uint64_t> parse_limit(std::string_view text, uint64_t whole);

// "98.4 MB (93.8 MiB)": both units, so that no reader has to guess.
[[nodiscard]] std::string format_bytes(uint64_t bytes);

// "93.8 MiB" alone, for tables.
[[nodiscard]] std::string format_bytes_short(uint64_t bytes);

// a * b, or false where it does not fit in 64 bits.
[[nodiscard]] bool multiply_checked(uint64_t a, uint64_t b, uint64_t& product);
[[nodiscard]] bool add_checked(uint64_t a, uint64_t b, uint64_t& sum);

}  // namespace reckon
