// `reckon round-worker`: the child process of a round (experiment/round_protocol.h). Not for
// people.
#include <unistd.h>

#include <csignal>
#include <initializer_list>

#include "adapters/open.h"
#include "cli/command.h"
#include "experiment/round_protocol.h"

namespace reckon::cli {
namespace {

Result<ExitCode> serve() {
  // Who ends a run asks every process of it to end. The parent decides what becomes of the pair in
  // progress; an arm must not look as if it had crashed.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(signal, SIG_IGN);
  TRY(experiment::serve_round(adapters::open_runner, STDIN_FILENO, STDOUT_FILENO));
  return kExitDone;
}

}  // namespace

void add_round_worker_command(Cli& cli) {
  cli.app.add_subcommand("round-worker", "run one round's measurements")
      ->group("")
      ->callback([&cli] { cli.action = serve; });
}

}  // namespace reckon::cli
