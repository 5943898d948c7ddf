// Reads the tokenizer of a Hugging Face folder: tokenizer.json, and for which tokens begin and end
// a text tokenizer_config.json, config.json and generation_config.json where they are there.
//
// What a tokenizer.json says is done or it is an error that names the key; only "version",
// "truncation" and "padding" are left to the caller of a tokenizer and count for nothing here.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "formats/tokenizer_state.h"

namespace reckon {

[[nodiscard]] Result<std::unique_ptr<TokenizerState>> read_json_tokenizer(
    const std::string& folder);

}  // namespace reckon
