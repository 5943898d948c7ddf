// BPE tokens of a piece by ranked merges, over bytes or over characters, as the model "BPE" of
// Hugging Face tokenizers does it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/bpe.h"
#include "formats/token_model.h"
#include "formats/vocabulary.h"

namespace reckon {

struct BpeOptions {
  bool byte_level = false;     // the vocabulary is written in the byte alphabet
  bool byte_fallback = false;  // an unknown character becomes its bytes' "<0x..>" tokens
  bool fuse_unk = false;       // unknown neighbours become one unknown token
  bool ignore_merges = false;  // a piece that is a token as a whole becomes that token
  std::optional<int32_t> unk =
      std::nullopt;  // none: what is unknown is left out, and its neighbours may merge
};

class BpeModel : public TokenModel {
 public:
  BpeModel(const BpeOptions& options, const Vocabulary& vocabulary, MergeTable merges);

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override;
  void byte(uint8_t byte, std::vector<int32_t>& ids) const override;

 private:
  void add_unknown_char(std::string_view bytes, std::vector<int32_t>& symbols, bool& pending) const;

  BpeOptions options_;
  std::array<int32_t, 256> byte_tokens_{};  // byte-level: of each byte; else those of fallback
  std::unordered_map<char32_t, int32_t> characters_;
  std::unordered_map<std::string, int32_t> whole_;  // by bytes, where merges may be ignored
  MergeTable merges_;
};

}  // namespace reckon
