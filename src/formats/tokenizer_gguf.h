// Reads the tokenizer of a GGUF file.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "formats/gguf.h"
#include "formats/tokenizer_state.h"

namespace reckon {

[[nodiscard]] Result<std::unique_ptr<TokenizerState>> read_gguf_tokenizer(const GgufFile& gguf);

// The values of tokenizer.ggml.pre that are known, for messages: "default, gpt-2, ...".
[[nodiscard]] std::string gguf_pre_tokenizer_names();

}  // namespace reckon
