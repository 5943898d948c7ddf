// Reads the tokenizer of a GGUF file.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "formats/gguf.h"
#include "formats/tokenizer_state.h"

namespace reckon {

[[nodiscard]] Result<std::unique_ptr<TokenizerState>> read_gguf_tokenizer(const GgufFile& gguf);

// What a user should know: that the file does not say how it splits text, where that is so.
[[nodiscard]] std::optional<std::string> gguf_tokenizer_note(const GgufFile& gguf);

// The values of tokenizer.ggml.pre that are known, for messages: "default, gpt-2, ...".
[[nodiscard]] std::string gguf_pre_tokenizer_names();

}  // namespace reckon
