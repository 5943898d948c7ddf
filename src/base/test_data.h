// Where tests find recorded data and the project itself. The build defines both folders
// (cmake/modules.cmake).
#pragma once

#include <string>
#include <string_view>

namespace reckon {

extern const char* const kGoldenFolder;   // tests/golden with its archives unpacked
extern const char* const kProjectFolder;  // the root of the source tree

inline std::string golden_path(std::string_view name) {
  return std::string(kGoldenFolder) + "/" + std::string(name);
}

inline std::string project_path(std::string_view name) {
  return std::string(kProjectFolder) + "/" + std::string(name);
}

}  // namespace reckon
