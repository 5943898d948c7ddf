// Checks of configurations that families share: what a config.json says is either computed, known
// to make no difference, or an error that names the file and the key.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "formats/checkpoint.h"

namespace reckon::models {

// "FILE: 'KEY' PROBLEM"
[[nodiscard]] Error bad_key(const Checkpoint& checkpoint, std::string_view key,
                            std::string_view problem);

// A size that must be 1 to `largest`: far beyond any published model, so that products of any
// three stay within 63 bits.
struct SizeLimit {
  std::string_view what;
  int64_t value;
  int64_t largest;
};
[[nodiscard]] Status check_limits(const Checkpoint& checkpoint, std::span<const SizeLimit> limits);
[[nodiscard]] Status check_epsilon(const Checkpoint& checkpoint, float epsilon);  // of RMSNorms
[[nodiscard]] Status check_rope_base(const Checkpoint& checkpoint, double base);

// Fails where the key is true.
[[nodiscard]] Status refuse_true(const Checkpoint& checkpoint, std::string_view key);

// Fails where a config.json has a key of other models with a value that is not neutral; a
// configuration that has one computes what nobody here knows, whatever family it says it is. `own`
// are those that the family reads by itself.
[[nodiscard]] Status check_foreign_keys(const Checkpoint& checkpoint,
                                        std::span<const std::string_view> own);

// Fails where a config.json scales rope, or names two rope bases.
[[nodiscard]] Status check_plain_rope(const Checkpoint& checkpoint);

// Of a GGUF file: fails where it has a key of its architecture that is in neither list (any one
// might change what the model computes), or scales rope, in whichever way.
[[nodiscard]] Status check_gguf_keys(const Checkpoint& checkpoint,
                                     std::span<const std::string_view> known,
                                     std::span<const std::string_view> own);
// The rows of token_embd.weight; what vocab_size says must agree.
[[nodiscard]] Result<int64_t> gguf_vocabulary(const Checkpoint& checkpoint);

}  // namespace reckon::models
