#include "ledger/merge.h"

#include <set>
#include <utility>

namespace reckon::ledger {

Result<MergeReport> merge(Store& into, const Store& from) {
  TRY_ASSIGN(ReadReport theirs, from.read());
  TRY_ASSIGN(ReadReport ours, into.read());
  std::set<std::string> known;
  for (const Event& event : ours.events) {
    TRY_ASSIGN(std::string sum, checksum(event));
    known.insert(std::move(sum));
  }
  MergeReport report;
  std::vector<Event> missing;
  for (Event& event : theirs.events) {
    TRY_ASSIGN(const std::string sum, checksum(event));
    if (known.contains(sum)) {
      ++report.known;
    } else {
      missing.push_back(std::move(event));
    }
  }
  TRY_ASSIGN(const AppendReport appended, into.append(missing));
  report.added = missing.size();
  report.left_out = std::move(theirs.warnings);
  report.warnings = std::move(ours.warnings);
  report.warnings.insert(report.warnings.end(), appended.warnings.begin(), appended.warnings.end());
  return report;
}

}  // namespace reckon::ledger
