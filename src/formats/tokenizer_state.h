// What a Tokenizer consists of, for the readers that build one. Const after it was built.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/added_tokens.h"
#include "formats/normalizer.h"
#include "formats/pretokenizer.h"
#include "formats/token_model.h"

namespace reckon {

// The bytes of each token, by id.
class TokenBytes {
 public:
  void add(std::string_view bytes) {
    pool_ += bytes;
    ends_.push_back(pool_.size());
  }
  [[nodiscard]] size_t size() const { return ends_.size(); }
  [[nodiscard]] std::string_view at(size_t id) const {
    const size_t begin = id == 0 ? 0 : ends_[id - 1];
    return std::string_view(pool_).substr(begin, ends_[id] - begin);
  }

 private:
  std::string pool_;
  std::vector<size_t> ends_;
};

struct TokenizerState {
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre;
  std::unique_ptr<const TokenModel> model;
  TokenBytes bytes;
  std::vector<bool> control;  // of each token
  bool strips_space = false;  // encoding puts a space before a text, which decoding drops
  std::optional<int32_t> bos;
  std::vector<int32_t> eos;  // the first is the tokenizer's own
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;

  void encode(std::string_view text, Special special, std::vector<int32_t>& ids) const;

 private:
  void encode_piece(std::string_view piece, bool first, Special special,
                    std::vector<int32_t>& ids) const;
  void encode_run(std::string_view run, PreTokenizer::Start start, Special special,
                  std::vector<int32_t>& ids) const;
};

}  // namespace reckon
