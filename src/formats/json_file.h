// JSON of model files, checked before anything walks it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"

namespace reckon {

// Parses `text` into `object`: a JSON object that nests at most 64 deep and has no name twice in
// any object. Errors name `path` and `what` ("the header") and where the text stops being JSON.
[[nodiscard]] Status parse_json_object(std::string_view path, std::string_view what,
                                       std::string_view text, nlohmann::json& object);

}  // namespace reckon
