// Byte-level BPE tokenizers, read from a checkpoint.
//
// encode() gives exactly the token ids of Hugging Face tokenizers (PyPI `tokenizers`) for valid
// UTF-8. Any other bytes are accepted, too: each byte that is not part of valid UTF-8 becomes its
// single-byte token and splits words. So decode(encode(x)) == x for every byte string x, with two
// exceptions that tokenizers share: a byte for which the vocabulary has no token is left out
// (SmolLM2 lacks 21: six control characters and bytes that hardly occur in UTF-8), and qwen2
// normalises text to form C.
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
#include "formats/checkpoint.h"

namespace reckon {

// What the text of a control token ("<|im_start|>") means where it occurs in the input.
enum class Special {
  kParse,   // that token; the longest one where several match
  kIgnore,  // plain text
};

class Tokenizer {
 public:
  // GGUF with tokenizer.ggml.model "gpt2" and a known tokenizer.ggml.pre; anything else (a
  // folder's tokenizer.json included) is an error that says what is supported.
  [[nodiscard]] static Result<Tokenizer> from_checkpoint(const Checkpoint& checkpoint);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Token ids of the text alone: no bos is added (see add_bos).
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text, Special special) const;
  // The bytes of the tokens, control tokens as their text; a token may end inside a UTF-8
  // character (see utf8_stream.h). Ids outside the vocabulary give no bytes.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const;
  [[nodiscard]] std::string_view token_bytes(int32_t id) const;

  [[nodiscard]] int32_t vocab_size() const;
  [[nodiscard]] std::optional<int32_t> bos() const;
  [[nodiscard]] std::optional<int32_t> eos() const;
  [[nodiscard]] bool add_bos() const;  // whether the model wants bos before a prompt
  [[nodiscard]] bool is_control(int32_t id) const;
  // The id of a control token by its text ("<|im_end|>").
  [[nodiscard]] std::optional<int32_t> control_token(std::string_view text) const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);
  friend class TokenizerBuilder;

  std::unique_ptr<const State> state_;
};

}  // namespace reckon
