// MODEL as users type it, to a path that Checkpoint::open takes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

// A GGUF file or a Hugging Face folder as it is; "synth:NAME" (formats/synthetic.h) in its shortest
// form; a shipped name ("smollm2") to its file under
// model_cache_folder(). A shipped model that was not fetched yet is a failure that says how to get
// it; anything else is a usage error that suggests the nearest name.
[[nodiscard]] Result<std::string> resolve_model(std::string_view typed);

// Names of the models that Reckon ships (fetches), sorted.
[[nodiscard]] std::span<const std::string> shipped_models();

// $XDG_CACHE_HOME/reckon/models, by default ~/.cache/reckon/models.
[[nodiscard]] std::string model_cache_folder();

}  // namespace reckon
