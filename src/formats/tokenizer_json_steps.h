// The parts of a tokenizer.json around its model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/json_node.h"
#include "formats/normalizer.h"
#include "formats/pretokenizer.h"

namespace reckon {

// NFC, Prepend, Replace and Sequence.
[[nodiscard]] Status read_normalizer(const JsonNode& node, Normalizer& normalizer);

// ByteLevel, Split, Digits, Metaspace and Sequence. Sets `byte_level` where pieces become the byte
// alphabet's characters in the end.
[[nodiscard]] Status read_pre_tokenizer(const JsonNode& node, PreTokenizer& pre, bool& byte_level);

// How tokens become text.
struct DecodeRules {
  bool byte_level = false;                                   // from the byte alphabet
  bool byte_fallback = false;                                // "<0x..>" is a byte
  bool strips_space = false;                                 // one space at the start of a text
  std::vector<std::pair<std::string, std::string>> replace;  // in this order

  [[nodiscard]] std::string bytes_of(std::string_view token) const;
};
// ByteLevel, Metaspace, Replace, ByteFallback, Fuse, Strip and Sequence.
[[nodiscard]] Status read_decoder(const JsonNode& node, DecodeRules& rules);

// The tokens around a text: TemplateProcessing, ByteLevel (which changes no ids) and Sequence.
struct Surroundings {
  std::vector<int64_t> before;
  std::vector<int64_t> after;
};
[[nodiscard]] Status read_post_processor(const JsonNode& node, Surroundings& around);

}  // namespace reckon
