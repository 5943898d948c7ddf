// `--audit-buffers`, as the commands that run a model have it.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/command.h"
#include "engine/audit.h"

namespace reckon::cli {

void add_audit_option(CLI::App& command, bool& audit);

// A line that says that every buffer was read, or a table of those that were not and their sum.
[[nodiscard]] std::string audit_text(const engine::AuditReport& report);
[[nodiscard]] nlohmann::json audit_json(const engine::AuditReport& report);

// Prints the text on stderr, behind what went to stdout. kExitCheckFailed where a buffer was not
// read, else kExitDone.
[[nodiscard]] ExitCode conclude_audit(const engine::AuditReport& report);

}  // namespace reckon::cli
