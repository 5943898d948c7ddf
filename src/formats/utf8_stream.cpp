#include "formats/utf8_stream.h"

#include <utility>

#include "base/utf8.h"

namespace reckon {

std::string Utf8Stream::push(std::string_view bytes) {
  const std::string all = std::exchange(held_, {}).append(bytes);
  std::string text;
  std::string_view rest = all;
  while (!rest.empty()) {
    const Utf8Char next = decode_utf8(rest);
    if (next.status == Utf8Status::kIncomplete) {
      held_ = rest;
      break;
    }
    text += next.status == Utf8Status::kValid ? rest.substr(0, next.length) : kReplacementCharacter;
    rest.remove_prefix(next.length);
  }
  return text;
}

std::string Utf8Stream::flush() {
  return std::exchange(held_, {}).empty() ? std::string() : std::string(kReplacementCharacter);
}

}  // namespace reckon
