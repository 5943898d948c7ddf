// `reckon ledger replay`.
#pragma once

#include "cli/command.h"

namespace reckon::cli {

void add_ledger_replay(Cli& cli, CLI::App& group);

}  // namespace reckon::cli
