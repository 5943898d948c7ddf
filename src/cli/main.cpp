#include "cli/command.h"

int main(int argc, char** argv) {
  return reckon::cli::run_cli(argc, argv);
}
