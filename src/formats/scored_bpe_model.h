// BPE by the tokens' scores, as SentencePiece does it (https://github.com/google/sentencepiece,
// Kudo and Richardson 2018): of the adjacent pairs that make a token the one with the best score
// is merged first, the leftmost of equal ones.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/token_model.h"

namespace reckon {

class ScoredBpeModel : public TokenModel {
 public:
  struct Token {
    std::string_view text;
    int32_t id;
    float score;
  };
  // `byte_tokens`: the tokens of what is no token, kNoToken where absent; `unk` stands for it where
  // a byte has none.
  ScoredBpeModel(const std::vector<Token>& tokens, const std::array<int32_t, 256>& byte_tokens,
                 std::optional<int32_t> unk);

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override;
  void byte(uint8_t byte, std::vector<int32_t>& ids) const override;

 private:
  struct Entry {
    int32_t id;
    float score;
  };
  [[nodiscard]] const Entry* find(std::string_view text) const;

  std::unique_ptr<const std::string> pool_;              // the texts, one after the other
  std::unordered_map<std::string_view, Entry> entries_;  // by views of the pool
  std::array<int32_t, 256> byte_tokens_;
  std::optional<int32_t> unk_;
};

}  // namespace reckon
