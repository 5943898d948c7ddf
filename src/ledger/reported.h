// Figures that others reported, written by hand in a YAML file, as events: an `imported` one for
// each entry, and `note` and `superseded` events for the links between them. docs/ledger.md
// describes the file. Pure and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ledger/amend.h"
#include "ledger/event.h"

namespace reckon::ledger {

// Usage errors "PATH:LINE: …" name the key and what was expected.
[[nodiscard]] Result<std::vector<Event>> read_reported(std::string_view text,
                                                       const std::string& path,
                                                       const Signature& signature);

}  // namespace reckon::ledger
