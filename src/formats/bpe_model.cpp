#include "formats/bpe_model.h"

#include <utility>

#include "base/utf8.h"
#include "formats/byte_alphabet.h"

namespace reckon {

BpeModel::BpeModel(const BpeOptions& options, const Vocabulary& vocabulary, MergeTable merges)
    : options_(options), merges_(std::move(merges)) {
  for (size_t i = 0; i < byte_tokens_.size(); ++i) {
    const auto byte = static_cast<uint8_t>(i);
    byte_tokens_[i] =
        vocabulary.find(options.byte_level ? byte_to_alphabet(byte) : byte_token_text(byte));
  }
  vocabulary.each([&](std::string_view text, int32_t id) {
    if (!options.byte_level && !text.empty()) {
      const Utf8Char first = decode_utf8(text);
      if (first.status == Utf8Status::kValid && first.length == text.size()) {
        characters_.emplace(first.code_point, id);
      }
    }
    if (!options.ignore_merges) return;
    if (!options.byte_level) {
      whole_.emplace(text, id);
    } else if (auto bytes = bytes_from_alphabet(text)) {
      whole_.emplace(*std::move(bytes), id);
    }
  });
}

void BpeModel::tokenize(std::string_view piece, std::vector<int32_t>& ids) const {
  if (options_.ignore_merges) {
    if (const auto found = whole_.find(std::string(piece)); found != whole_.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  std::vector<int32_t> symbols;
  symbols.reserve(piece.size());
  bool pending = false;  // an unknown token that the next may be fused with
  const auto known = [&](int32_t id) {
    if (std::exchange(pending, false)) symbols.push_back(*options_.unk);
    symbols.push_back(id);
  };
  while (!piece.empty()) {
    size_t length = 1;
    int32_t id = kNoToken;
    if (options_.byte_level) {
      id = byte_tokens_[static_cast<uint8_t>(piece[0])];
    } else {
      const Utf8Char next = decode_utf8(piece);
      length = next.length;
      const auto found = characters_.find(next.code_point);
      if (found != characters_.end()) id = found->second;
    }
    if (id != kNoToken) {
      known(id);
    } else {
      add_unknown_char(piece.substr(0, length), symbols, pending);
    }
    piece.remove_prefix(length);
  }
  if (pending) symbols.push_back(*options_.unk);
  merges_.merge(symbols, ids);
}

void BpeModel::add_unknown_char(std::string_view bytes, std::vector<int32_t>& symbols,
                                bool& pending) const {
  if (options_.byte_fallback && !options_.byte_level) {
    bool all = true;
    for (const char byte : bytes) all &= byte_tokens_[static_cast<uint8_t>(byte)] != kNoToken;
    if (all) {
      // A pending unknown token comes behind them, as in tokenizers.
      for (const char byte : bytes) symbols.push_back(byte_tokens_[static_cast<uint8_t>(byte)]);
      return;
    }
  }
  if (!options_.unk) return;
  if (pending && !options_.fuse_unk) symbols.push_back(*options_.unk);
  pending = true;
}

void BpeModel::byte(uint8_t byte, std::vector<int32_t>& ids) const {
  const int32_t id = options_.byte_level || options_.byte_fallback ? byte_tokens_[byte] : kNoToken;
  if (id != kNoToken) {
    ids.push_back(id);
  } else if (options_.unk) {
    ids.push_back(*options_.unk);
  }
}

}  // namespace reckon
