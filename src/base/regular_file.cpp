#include "base/regular_file.h"

#include <filesystem>
#include <system_error>

namespace reckon {

std::string why_not_a_file(const std::string& path) {
  std::error_code error;
  switch (std::filesystem::status(path, error).type()) {
    case std::filesystem::file_type::regular:
      return "";
    case std::filesystem::file_type::not_found:
      return "no such file";
    case std::filesystem::file_type::directory:
      return "is a folder, not a file";
    case std::filesystem::file_type::fifo:
      return "is a pipe, not a file";
    case std::filesystem::file_type::socket:
      return "is a socket, not a file";
    case std::filesystem::file_type::character:
    case std::filesystem::file_type::block:
      return "is a device, not a file";
    default:
      return error ? error.message() : "is not a regular file";
  }
}

}  // namespace reckon
