// Tokenizers, read from a checkpoint: byte-level BPE, SentencePiece's BPE and unigram models.
//
// encode() gives exactly the token ids of Hugging Face tokenizers (PyPI `tokenizers`) for valid
// UTF-8. Any other bytes are accepted, too: each byte that is not part of valid UTF-8 becomes its
// own token and splits words; no space is put before what follows it.
//
// decode(encode(x)) == x for every byte string x, except for what the reference does as well:
// - a normaliser's changes stay (Qwen's form C; SentencePiece's "▁" in the input, a space);
// - byte-level: a byte for which the vocabulary has no token is left out (SmolLM2 lacks 21: six
//   control characters and bytes that hardly occur in UTF-8);
// - SentencePiece: a space goes before the text, and decode() drops one at the start; where every
//   text between control tokens gets one, those behind the first stay. What the vocabulary does not
//   know becomes its bytes' tokens, or the unknown token where it has none of those.
// A Tokenizer owns what it needs (the checkpoint may be closed), is const and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/added_tokens.h"
#include "formats/checkpoint.h"

namespace reckon {

struct TokenizerState;

class Tokenizer {
 public:
  // GGUF: tokenizer.ggml.model "gpt2" with a known tokenizer.ggml.pre, "llama" or "t5". A folder:
  // its tokenizer.json (tokenizer_json.h). Anything that is not known is an error that names the
  // key and what is.
  [[nodiscard]] static Result<Tokenizer> from_checkpoint(const Checkpoint& checkpoint);
  // The folder need not hold weights.
  [[nodiscard]] static Result<Tokenizer> from_folder(const std::string& folder);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Token ids of the text alone: nothing is added before or after it (see prefix).
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text, Special special) const;
  // The bytes of the tokens, control tokens as their text; a token may end inside a UTF-8
  // character (see utf8_stream.h). Ids outside the vocabulary give no bytes. token_bytes() keeps
  // the space of a first token, which belongs to a text that goes on.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const;
  [[nodiscard]] std::string_view token_bytes(int32_t id) const;

  [[nodiscard]] int32_t vocab_size() const;
  [[nodiscard]] std::optional<int32_t> bos() const;
  [[nodiscard]] std::optional<int32_t> eos() const;
  // All tokens that end a text by the checkpoint's configuration, eos() first.
  [[nodiscard]] std::span<const int32_t> end_tokens() const;
  // What the model wants before and after a text by itself ("<s>"; GLM has two).
  [[nodiscard]] std::span<const int32_t> prefix() const;
  [[nodiscard]] std::span<const int32_t> suffix() const;
  [[nodiscard]] bool add_bos() const;  // whether the prefix begins with bos()
  [[nodiscard]] bool is_control(int32_t id) const;
  // The id of a control token by its text ("<|im_end|>").
  [[nodiscard]] std::optional<int32_t> control_token(std::string_view text) const;

 private:
  explicit Tokenizer(std::unique_ptr<const TokenizerState> state);

  std::unique_ptr<const TokenizerState> state_;
};

}  // namespace reckon
