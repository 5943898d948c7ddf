#include "experiment/utf8.h"

#include <cstdint>

namespace reckon::experiment {
namespace {

// Length of the well-formed character at `at`, or 0.
size_t character_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  uint32_t code = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0u) != 0x80u) return 0;
    code = (code << 6) | (byte(at + i) & 0x3fu);
  }
  if (length == 3 && (code < 0x800 || (code >= 0xd800 && code <= 0xdfff))) return 0;
  if (length == 4 && (code < 0x10000 || code > 0x10ffff)) return 0;
  return length;
}

}  // namespace

bool valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) {
      line += "\xef\xbf\xbd";
    } else if (length == 1 && (byte < 0x20 || byte == 0x7f)) {
      line += ' ';
    } else {
      line += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return line;
}

std::string shorten(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  size_t end = 0;
  while (true) {
    const size_t length = character_length(text, end);
    if (length == 0 || end + length > bytes) break;
    end += length;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace reckon::experiment
