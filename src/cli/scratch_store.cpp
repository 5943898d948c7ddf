#include "cli/scratch_store.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>
#include <utility>

#include "ledger/open.h"

namespace reckon::cli {

Result<std::unique_ptr<ScratchStore>> ScratchStore::create(std::unique_ptr<ledger::Store> under) {
  std::error_code failure;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(failure);
  std::string name = (parent / "reckon-XXXXXX").string();
  if (failure || ::mkdtemp(name.data()) == nullptr) {
    return failed(
        fmt::format("no temporary folder: {}", failure ? failure.message() : std::strerror(errno)));
  }
  TRY_ASSIGN(auto top, ledger::open_store((std::filesystem::path(name) / "ledger").string()));
  return std::unique_ptr<ScratchStore>(
      new ScratchStore(std::move(name), std::move(under), std::move(top)));
}

ScratchStore::~ScratchStore() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Result<ledger::AppendReport> ScratchStore::append(std::span<const ledger::Event> events) {
  return top_->append(events);
}

Result<ledger::ReadReport> ScratchStore::read() const {
  TRY_ASSIGN(ledger::ReadReport report, under_->read());
  TRY_ASSIGN(ledger::ReadReport more, top_->read());
  std::move(more.events.begin(), more.events.end(), std::back_inserter(report.events));
  std::move(more.warnings.begin(), more.warnings.end(), std::back_inserter(report.warnings));
  return report;
}

Result<ledger::VerifyReport> ScratchStore::verify() const {
  return top_->verify();
}

}  // namespace reckon::cli
