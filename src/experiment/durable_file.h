// Files whose content is on stable storage when a call returns ok. Errors name the file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon::experiment {

// Adds a line and its newline, creating the file where needed.
[[nodiscard]] Status append_line(const std::string& path, std::string_view line);

// Afterwards the file is `text`, or what it was before; never a part of either.
[[nodiscard]] Status replace_file(const std::string& path, std::string_view text);

// Harmless where there is none.
[[nodiscard]] Status remove_file(const std::string& path);

// "" where there is none.
[[nodiscard]] Result<std::string> read_if_present(const std::string& path);

}  // namespace reckon::experiment
