#include "base/regular_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
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

Result<std::string> read_small_file(const std::string& path, uintmax_t most_bytes) {
  if (const std::string why = why_not_a_file(path); !why.empty()) {
    return usage_error(path + ": " + why);
  }
  std::error_code error;
  if (std::filesystem::file_size(path, error) > most_bytes) {
    return usage_error(path + ": larger than " + std::to_string(most_bytes) + " bytes");
  }
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return failed(path + ": cannot be read");
  return text;
}

}  // namespace reckon
