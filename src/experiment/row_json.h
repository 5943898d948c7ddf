// Dispatch rows as JSON, for the round protocol and the journal. Pure and thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/runner.h"

namespace reckon::experiment {

[[nodiscard]] nlohmann::json encode_rows(std::span<const DispatchRow> rows);
// kFailed, with `what` in front, for anything that encode_rows did not write.
[[nodiscard]] Result<std::vector<DispatchRow>> decode_rows(const nlohmann::json& json,
                                                           const std::string& what);

}  // namespace reckon::experiment
