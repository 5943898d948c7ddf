#include "base/program_path.h"

#include <filesystem>
#include <system_error>

namespace reckon {

std::string program_path() {
  std::error_code failure;
  return std::filesystem::read_symlink("/proc/self/exe", failure).string();
}

}  // namespace reckon
