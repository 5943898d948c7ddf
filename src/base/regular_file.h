// Is this path a file that can be read to its end? Asked before it is opened, because a pipe would
// wait for a writer and a folder fails late.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace reckon {

// "" for a regular file (links are followed); else what it is, to stand behind its name: "no such
// file", "is a folder, not a file", "is a pipe, not a file", or why it cannot be looked at.
[[nodiscard]] std::string why_not_a_file(const std::string& path);

// All of a file that a person wrote. Usage errors that name it: no regular file, or more than
// `most_bytes`, which is found out before any is read; failed: it cannot be read.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path, uintmax_t most_bytes);

}  // namespace reckon
