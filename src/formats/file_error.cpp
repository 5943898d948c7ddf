#include "formats/file_error.h"

#include <fmt/format.h>

namespace reckon {

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string out;
  for (const char c : text) {
    if (out.size() >= kLongest) return out + "...";
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Error file_error(std::string_view path, std::string_view message) {
  return failed(fmt::format("{}: {}", path, message));
}

}  // namespace reckon
