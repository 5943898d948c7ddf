#include "base/utf8.h"

#include <cstdint>

namespace reckon {
namespace {

// What may follow a lead byte: how many continuation bytes, and the range of the first of them
// (the others are 80 ... BF).
struct Lead {
  size_t continuations;
  uint8_t low;
  uint8_t high;
};

Lead lead_of(uint8_t byte) {
  if (byte >= 0xc2 && byte <= 0xdf) return {1, 0x80, 0xbf};
  if (byte == 0xe0) return {2, 0xa0, 0xbf};
  if (byte == 0xed) return {2, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return {2, 0x80, 0xbf};
  if (byte == 0xf0) return {3, 0x90, 0xbf};
  if (byte >= 0xf1 && byte <= 0xf3) return {3, 0x80, 0xbf};
  if (byte == 0xf4) return {3, 0x80, 0x8f};
  return {0, 0, 0};
}

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return {Utf8Status::kValid, first, 1};
  const Lead lead = lead_of(first);
  if (lead.continuations == 0) return {Utf8Status::kInvalid, 0, 1};
  char32_t code_point = first & (0x3fU >> lead.continuations);
  for (size_t i = 1; i <= lead.continuations; ++i) {
    if (i == text.size()) return {Utf8Status::kIncomplete, 0, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xbf;
    if (byte < low || byte > high) return {Utf8Status::kInvalid, 0, i};
    code_point = code_point << 6 | (byte & 0x3fU);
  }
  return {Utf8Status::kValid, code_point, lead.continuations + 1};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Utf8Char next = decode_utf8(text.substr(end));
    if (next.status != Utf8Status::kValid) break;
    end += next.length;
  }
  return end;
}

bool valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}

void append_utf8(char32_t code_point, std::string& text) {
  const auto continuation = [&](int shift) {
    text += static_cast<char>(0x80U | ((code_point >> shift) & 0x3fU));
  };
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xc0U | code_point >> 6);
    continuation(0);
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xe0U | code_point >> 12);
    continuation(6);
    continuation(0);
  } else {
    text += static_cast<char>(0xf0U | code_point >> 18);
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

}  // namespace reckon
