#include "cli/ledger_access.h"

#include <fmt/format.h>

#include "ledger/locate.h"
#include "ledger/open.h"

namespace reckon::cli {

Result<std::unique_ptr<ledger::Store>> open_ledger(const Cli& cli) {
  std::string location = cli.ledger;
  if (location.empty()) {
    TRY_ASSIGN(location, ledger::default_ledger());
  }
  return ledger::open_store(location);
}

Result<ledger::Ledger> read_ledger(const ledger::Store& store) {
  TRY_ASSIGN(const ledger::ReadReport report, store.read());
  ledger::Ledger ledger = ledger::fold(report.events);
  print_warnings(report.warnings);
  print_warnings(ledger.warnings);
  return ledger;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    fmt::print(stderr, "reckon: warning: {}\n", warning);
  }
}

}  // namespace reckon::cli
