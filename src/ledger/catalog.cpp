#include "ledger/catalog.h"

#include <utility>

#include "ledger/sqlite/indexed_catalog.h"

namespace reckon::ledger {
namespace {

class FoldedCatalog : public Catalog {
 public:
  FoldedCatalog(Ledger ledger, std::vector<std::string> warnings)
      : ledger_(std::move(ledger)), warnings_(std::move(warnings)) {
    warnings_.insert(warnings_.end(), ledger_.warnings.begin(), ledger_.warnings.end());
  }

  Result<std::vector<Summary>> list() override {
    std::vector<Summary> summaries;
    for (const Entry& entry : ledger_.entries) summaries.push_back(summary_of(entry));
    return summaries;
  }
  Result<Entry> entry(std::string_view prefix) override {
    TRY_ASSIGN(const Entry* entry, ledger_.resolve(prefix));
    return *entry;
  }
  Result<Consultation> consult(const Query& query) override {
    return ledger::consult(ledger_.entries, query);
  }
  Result<std::vector<Entry>> of_class(const Scope& scope) override {
    return entries_of_class(ledger_, scope);
  }
  Result<bool> has_round(std::string_view round) override { return holds_round(ledger_, round); }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  Ledger ledger_;
  std::vector<std::string> warnings_;
};

}  // namespace

Result<std::unique_ptr<Catalog>> open_catalog_without_index(const Store& store) {
  TRY_ASSIGN(ReadReport report, store.read());
  return std::unique_ptr<Catalog>(
      std::make_unique<FoldedCatalog>(fold(report.events), std::move(report.warnings)));
}

Result<std::unique_ptr<Catalog>> open_catalog(const Store& store) {
  if (!store.indexed_folder().empty()) {
    if (auto indexed = sqlite::open_indexed_catalog(store)) return indexed;
  }
  return open_catalog_without_index(store);
}

}  // namespace reckon::ledger
