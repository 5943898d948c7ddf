// The unigram language model of SentencePiece (Kudo, "Subword Regularization", 2018): the tokens
// of a piece whose scores add up to the most (Viterbi), as the model "Unigram" of Hugging Face
// tokenizers computes it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/prefix_table.h"
#include "formats/token_model.h"

namespace reckon {

class UnigramModel : public TokenModel {
 public:
  struct Token {
    std::string text;  // not empty
    int32_t id;
    double score;
  };
  // In what precision scores add up, which decides near ties: SentencePiece's own and tokenizers'.
  enum class Sums { kSingle, kDouble };
  // `byte_tokens`: kNoToken where unknown characters do not become bytes. Without `unk` an unknown
  // character without byte tokens is left out. `lowest_score`: an unknown character costs 10 more.
  UnigramModel(std::vector<Token> tokens, const std::array<int32_t, 256>& byte_tokens,
               std::optional<int32_t> unk, double lowest_score, Sums sums);

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override;
  void byte(uint8_t byte, std::vector<int32_t>& ids) const override;

 private:
  void add_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  std::vector<Token> tokens_;  // without texts
  PrefixTable table_;          // the values are indices of tokens_
  std::array<int32_t, 256> byte_tokens_;
  std::optional<int32_t> unk_;
  double unknown_score_;
  Sums sums_;
};

}  // namespace reckon
