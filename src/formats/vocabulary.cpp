#include "formats/vocabulary.h"

#include <fmt/format.h>

namespace reckon {

std::string byte_token_text(uint8_t byte) {
  return fmt::format("<0x{:02X}>", byte);
}

std::optional<uint8_t> byte_from_token_text(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c >= 'A' && c <= 'F')) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit ? c - '0' : c - 'A' + 10);
  }
  return static_cast<uint8_t>(value);
}

bool add_merge(MergeTable& merges, int32_t rank, std::string_view left, std::string_view right,
               const Vocabulary& vocabulary) {
  const int32_t left_id = vocabulary.find(left);
  const int32_t right_id = vocabulary.find(right);
  const int32_t merged = vocabulary.find(std::string(left).append(right));
  if (left_id == kNoToken || right_id == kNoToken || merged == kNoToken) return false;
  merges.add(left_id, right_id, rank, merged);
  return true;
}

}  // namespace reckon
