// Small text helpers shared by every module. Pure and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

// The candidate with the smallest edit distance to `word`, or "" where none is near enough
// (more than a third of its length away). For "unknown switch ...; did you mean ...?".
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> candidates);

[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);

// "1 round", "2 rounds".
[[nodiscard]] std::string counted(int64_t count, std::string_view noun);

// Text from anywhere on one line of valid UTF-8: line ends and tabs become spaces; other control
// characters and bytes that are not UTF-8 are shown as \x1b.
[[nodiscard]] std::string one_line(std::string_view text);

// At most `bytes` bytes of valid `text`, cut between characters, with "…" where it was cut.
[[nodiscard]] std::string shorten(std::string_view text, size_t bytes);

// A word as a POSIX shell reads it back.
[[nodiscard]] std::string shell_quoted(const std::string& word);

// The instant as "2026-09-14T08:30:00Z" (UTC).
[[nodiscard]] std::string utc_timestamp();

}  // namespace reckon
