// The files that cite the ledger, for `reckon ledger lint`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ledger/citation.h"

namespace reckon::cli {

// Of files, and of all sources and YAML files below folders: YAML below a folder `rules` or
// `recipes` is read as rules, all else as comments. Without paths: rules, recipes and src of the
// working folder. Usage errors: nothing there, a rule file that cannot be read.
[[nodiscard]] Result<std::vector<ledger::Citation>> read_citations(
    const std::vector<std::string>& paths);

}  // namespace reckon::cli
