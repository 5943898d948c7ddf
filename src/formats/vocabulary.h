// The texts of a tokenizer's tokens by id, and the ids by text. Owns the texts.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <tsl/robin_map.h>

#include "base/hash.h"
#include "formats/bpe.h"
#include "formats/token_model.h"

namespace reckon {

class Vocabulary {
 public:
  // Makes room for so many tokens.
  void reserve(size_t tokens) { ids_.reserve(tokens); }
  // Gives `id` to `text`. False where the text has an id already.
  bool add(std::string_view text, int32_t id) {
    const std::string& owned = texts_.emplace_back(text);
    if (ids_.emplace(owned, id).second) return true;
    texts_.pop_back();
    return false;
  }
  // kNoToken where there is none.
  [[nodiscard]] int32_t find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? kNoToken : found->second;
  }
  [[nodiscard]] size_t size() const { return ids_.size(); }
  // Calls each(text, id) for every token, in no order.
  template <typename Each>
  void each(Each each) const {
    for (const auto& [text, id] : ids_) each(text, id);
  }

 private:
  std::deque<std::string> texts_;  // never moves what it holds
  struct Hash {
    size_t operator()(std::string_view text) const { return hash64(text); }
  };
  tsl::robin_map<std::string_view, int32_t, Hash> ids_;
};

// The token that stands for a byte where a vocabulary has byte fallback: "<0xE2>".
[[nodiscard]] std::string byte_token_text(uint8_t byte);
[[nodiscard]] std::optional<uint8_t> byte_from_token_text(std::string_view text);

// Adds the rule that the tokens `left` and `right` make a third; false where one of the three is
// not in the vocabulary.
[[nodiscard]] bool add_merge(MergeTable& merges, int32_t rank, std::string_view left,
                             std::string_view right, const Vocabulary& vocabulary);

}  // namespace reckon
