// The regular expressions by which byte-level BPE tokenizers split text into pieces, each as
// matcher code on our own Unicode tables. (PCRE2 was tried and rejected: its version of Unicode
// differs from that of Hugging Face tokenizers, and so do ids.) Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace reckon {

enum class SplitPattern {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  // (https://github.com/openai/gpt-2/blob/master/src/encoder.py).
  kGpt2,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  // \s*[\r\n]+|\s+(?!\S)|\s+: Qwen 2 and 3.
  kQwen2,
  // The same with [\p{L}\p{M}]+ for letters, and marks no symbols: Qwen 3.5.
  kQwen35,
  // Qwen 2's with \p{N}{1,3}: Llama 3 and GLM 4.
  kLlama3,
  // [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
  // ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+: DeepSeek V3, after the two below.
  kDeepseekV3,
  kUpToThreeNumbers,  // \p{N}{1,3}
  kNumber,            // \p{N}
  kNumbers,           // \p{N}+
  kThreeDigits,       // [0-9][0-9][0-9]
  kPunctuation,       // [\p{P}\$\+<=>\^~\|]+
  kHanAndKana,        // [一-龥぀-ゟ゠-ヿ]+
};

// By the text of the expression, as a tokenizer.json has it; none where it is not known.
[[nodiscard]] std::optional<SplitPattern> split_pattern_from_regex(std::string_view regex);

// Whether every character is part of a match.
[[nodiscard]] bool covers_everything(SplitPattern pattern);

using PieceSink = std::function<void(std::string_view piece)>;

// Calls piece(...) for each match in `text` (valid UTF-8) and for what lies between matches, in
// order. Pieces are never empty and cover the text.
void split_by_pattern(SplitPattern pattern, std::string_view text, const PieceSink& piece);

}  // namespace reckon
