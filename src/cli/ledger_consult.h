// `reckon ledger consult`: does the ledger already know?
#pragma once

#include "cli/command.h"

namespace reckon::cli {

void add_ledger_consult(Cli& cli, CLI::App& group);

}  // namespace reckon::cli
