// The ledger that a command works on: --ledger, or the default one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "ledger/catalog.h"
#include "ledger/store.h"

namespace reckon::cli {

[[nodiscard]] Result<std::unique_ptr<ledger::Store>> open_ledger(const Cli& cli);

// What it knows; what could not be used goes to stderr as "reckon: warning: …" lines. The store
// must outlive it.
[[nodiscard]] Result<std::unique_ptr<ledger::Catalog>> read_catalog(const ledger::Store& store);

void print_warnings(const std::vector<std::string>& warnings);

}  // namespace reckon::cli
