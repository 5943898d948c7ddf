// `reckon ledger report`: the ledger as a folder of pages.
#pragma once

#include "cli/command.h"

namespace reckon::cli {

void add_ledger_report(Cli& cli, CLI::App& group);

}  // namespace reckon::cli
