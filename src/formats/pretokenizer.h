// Splits text into the pieces ("words") within which byte-level BPE merges. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace reckon {

enum class PreTokenizer {
  // GPT-2's pattern, 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  // (https://github.com/openai/gpt-2/blob/master/src/encoder.py).
  kGpt2,
  // Each number character alone, then GPT-2's pattern on what lies between.
  kSmollm,
  // Normalisation form C, then (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|
  // ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ (Qwen2's tokenizer.json).
  kQwen2,
};

// By the value of GGUF tokenizer.ggml.pre; none where it is not known.
[[nodiscard]] std::optional<PreTokenizer> pre_tokenizer_from_name(std::string_view name);
[[nodiscard]] std::string pre_tokenizer_names();  // "default, gpt-2, ...", for messages

// Calls word(piece) for each piece of `text` (valid UTF-8), in order. Pieces are never empty; they
// cover the text, or its normal form where the kind normalises, and live during the call.
void split_words(PreTokenizer kind, std::string_view text,
                 const std::function<void(std::string_view)>& word);

}  // namespace reckon
