#include "formats/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace reckon {
namespace {

constexpr char32_t kFirstExtra = 0x100;
constexpr int kExtras = 68;  // bytes that do not print

constexpr bool prints(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

// Byte to character, and extra character to byte.
struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<uint8_t, kExtras> extra{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  size_t extras = 0;
  for (int byte = 0; byte < 256; ++byte) {
    auto& character = alphabet.character[static_cast<size_t>(byte)];
    character = static_cast<char32_t>(byte);
    if (prints(byte)) continue;
    character = kFirstExtra + static_cast<char32_t>(extras);
    alphabet.extra[extras++] = static_cast<uint8_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();
static_assert(kAlphabet.character[0xad] == kFirstExtra + kExtras - 1);

}  // namespace

std::string byte_to_alphabet(uint8_t byte) {
  std::string text;
  append_utf8(kAlphabet.character[byte], text);
  return text;
}

std::optional<std::string> bytes_from_alphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Char next = decode_utf8(text);
    if (next.status != Utf8Status::kValid) return std::nullopt;
    if (next.code_point < 256 && prints(static_cast<int>(next.code_point))) {
      bytes += static_cast<char>(next.code_point);
    } else if (next.code_point - kFirstExtra < kExtras) {
      bytes += static_cast<char>(kAlphabet.extra[next.code_point - kFirstExtra]);
    } else {
      return std::nullopt;
    }
    text.remove_prefix(next.length);
  }
  return bytes;
}

}  // namespace reckon
