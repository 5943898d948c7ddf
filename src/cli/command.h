// How a subcommand plugs into the command line: each `*_command.cpp` adds its options to the app
// and leaves an action; main() parses, runs the action and maps errors to exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "base/result.h"

namespace reckon::cli {

// Exit codes that users script against (docs/cli.md).
enum ExitCode : int {
  kExitDone = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitRefused = 3,
  kExitCheckFailed = 4,
  kExitSignal = 128,  // plus the number of the signal that stopped a queue
};
[[nodiscard]] ExitCode exit_code(const Error& error);

struct Cli {
  CLI::App app{
      "Run large language models on one machine, and keep an honest ledger of kernel "
      "experiments.",
      "reckon"};
  std::string ledger;  // --ledger, as typed; empty: the default (ledger/locate.h)
  std::string self;    // this program's own path, for child processes
  // The command line, quoted for a shell, without the ledger's password: what reproduces a result.
  std::string typed;
  std::function<Result<ExitCode>()> action;
};

void add_run_command(Cli& cli);
void add_chat_command(Cli& cli);
void add_bench_command(Cli& cli);
void add_plan_command(Cli& cli);
void add_synth_command(Cli& cli);
void add_oracle_command(Cli& cli);
void add_tune_command(Cli& cli);
void add_ab_command(Cli& cli);
void add_queue_command(Cli& cli);
void add_ledger_command(Cli& cli);
void add_round_worker_command(Cli& cli);

// Parses and runs; prints errors as one line on stderr. Returns the exit code.
[[nodiscard]] int run_cli(int argc, char** argv);

}  // namespace reckon::cli
