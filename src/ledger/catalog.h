// What a ledger knows, asked without reading all of it where an index can find the answer.
//
// The index (sqlite/) only finds: what an entry says is read from its lines, checksums and all, and
// where index and lines disagree the lines are read whole. So the answers are those of folding
// every event, which is also what stores without an index do. Not thread-safe; safe between
// processes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ledger/consult.h"
#include "ledger/fold.h"
#include "ledger/store.h"
#include "ledger/summary.h"

namespace reckon::ledger {

class Catalog {
 public:
  virtual ~Catalog() = default;

  // Every entry, oldest first.
  [[nodiscard]] virtual Result<std::vector<Summary>> list() = 0;
  // By id or unique prefix (resolve_id).
  [[nodiscard]] virtual Result<Entry> entry(std::string_view prefix) = 0;
  [[nodiscard]] virtual Result<Consultation> consult(const Query& query) = 0;
  // Entries of the scope's workload class (same_noise), oldest first: what noise is learnt from.
  [[nodiscard]] virtual Result<std::vector<Entry>> of_class(const Scope& scope) = 0;
  // Does an entry hold the round of this id?
  [[nodiscard]] virtual Result<bool> has_round(std::string_view round) = 0;
  // Lines and events that were left out, and why.
  [[nodiscard]] virtual const std::vector<std::string>& warnings() const = 0;
};

// The ledger as it is now; what is appended later may or may not be seen.
[[nodiscard]] Result<std::unique_ptr<Catalog>> open_catalog(const Store& store);

// The same answers from events that were all read and folded.
[[nodiscard]] Result<std::unique_ptr<Catalog>> open_catalog_without_index(const Store& store);

}  // namespace reckon::ledger
