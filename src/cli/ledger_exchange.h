// `reckon ledger import` and `export`: figures from and for other tools.
#pragma once

#include "cli/command.h"

namespace reckon::cli {

void add_ledger_exchange(Cli& cli, CLI::App& group);

}  // namespace reckon::cli
