// `reckon ledger verify`, `merge` and `lint`: what keeps a ledger and what cites it sound.
#pragma once

#include "cli/command.h"

namespace reckon::cli {

void add_ledger_upkeep(Cli& cli, CLI::App& group);

}  // namespace reckon::cli
