// Small text helpers shared by every module. Pure and thread-safe.
#pragma once

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

// The instant as "2026-09-14T08:30:00Z" (UTC).
[[nodiscard]] std::string utc_timestamp();

}  // namespace reckon
