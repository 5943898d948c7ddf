// One-line errors about files, for the readers of this module.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

// Text from a file, fit for a one-line message: control characters and bytes outside ASCII as
// "\x0a", cut after 80 characters.
[[nodiscard]] std::string printable(std::string_view text);

// failed("<path>: <message>").
[[nodiscard]] Error file_error(std::string_view path, std::string_view message);

}  // namespace reckon
