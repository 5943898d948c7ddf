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

Result<std::unique_ptr<ledger::Catalog>> read_catalog(const ledger::Store& store) {
  TRY_ASSIGN(auto catalog, ledger::open_catalog(store));
  print_warnings(catalog->warnings());
  return catalog;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    fmt::print(stderr, "reckon: warning: {}\n", warning);
  }
}

}  // namespace reckon::cli
