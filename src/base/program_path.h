// Where the running program lies.
#pragma once

#include <string>

namespace reckon {

// Absolute, links followed, of this process's executable file. "" where the system does not say.
[[nodiscard]] std::string program_path();

}  // namespace reckon
