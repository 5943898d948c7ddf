// MODEL as users type it, to a path that Checkpoint::open takes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

// A GGUF file or a Hugging Face folder as it is; "synth:NAME" (formats/synthetic.h) in its shortest
// form; "tiny", which ships with Reckon, to shipped_folder() of this program; the name of a model
// that is fetched ("smollm2") to its file under model_cache_folder(). A named model that is not
// there is a failure that says how to get it; anything else is a usage error that suggests the
// nearest name.
[[nodiscard]] Result<std::string> resolve_model(std::string_view typed);

// Names that resolve_model() knows, sorted.
[[nodiscard]] std::span<const std::string> named_models();

// The folder of the model `name` that ships with the program at `program` (an absolute path):
// models/NAME or share/reckon/models/NAME in the nearest folder above it that has one, so that
// build/release/reckon finds the source tree's and bin/reckon the installed one. Absent: "".
[[nodiscard]] std::string shipped_folder(std::string_view name, std::string_view program);

// $XDG_CACHE_HOME/reckon/models, by default ~/.cache/reckon/models.
[[nodiscard]] std::string model_cache_folder();

}  // namespace reckon
