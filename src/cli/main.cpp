#include "cli/command.h"
#include "cli/signals.h"

int main(int argc, char** argv) {
  reckon::cli::prepare_signals();
  return reckon::cli::run_cli(argc, argv);
}
