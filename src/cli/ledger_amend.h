// `reckon ledger note`, `overturn`, `reopen` and `supersede`: what people add to an entry.
#pragma once

#include "cli/command.h"

namespace reckon::cli {

void add_ledger_amend(Cli& cli, CLI::App& group);

}  // namespace reckon::cli
