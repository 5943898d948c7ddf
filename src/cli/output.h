// How results leave: JSON on stdout, text files.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon::cli {

// Indented JSON and a newline on stdout. Always valid JSON: bytes that are not UTF-8 (a file name)
// are replaced.
void print_json(const nlohmann::json& json);
// The same text.
[[nodiscard]] std::string json_text(const nlohmann::json& json);

// What a model's reader should know (ModelInfo::notes), a line each on stderr.
void print_notes(std::span<const std::string> notes);

inline constexpr uint64_t kMaximumTextBytes = 16U << 20;

// The whole of a file, or of standard input for "-". Fails, naming the path: usage errors where
// there is no such file, or it is a folder or a pipe without a name under /dev, or there are more
// than kMaximumTextBytes (an endless device, say).
[[nodiscard]] Result<std::string> read_text(const std::string& path);
// Before long work whose result goes there: fails where the file cannot be written; creates it,
// and leaves what is in it alone.
[[nodiscard]] Status check_writable(const std::string& path);
// Creates or replaces the file. Fails, naming the path.
[[nodiscard]] Status write_text(const std::string& path, std::string_view text);

}  // namespace reckon::cli
