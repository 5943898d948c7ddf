// Adding another ledger's events to one: a union, by checksum.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "ledger/store.h"

namespace reckon::ledger {

struct MergeReport {
  size_t added = 0;
  size_t known = 0;                   // events that were there already
  std::vector<std::string> left_out;  // lines of the other ledger that are no events
  std::vector<std::string> warnings;  // of this ledger
};

// Appends the events of `from` that `into` does not have, as their writers wrote them and in the
// order that `from` reads in. Doing it again adds nothing; what happens at the same time in either
// ledger is merged by the next call.
[[nodiscard]] Result<MergeReport> merge(Store& into, const Store& from);

}  // namespace reckon::ledger
