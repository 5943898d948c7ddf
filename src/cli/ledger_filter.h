// Which entries `reckon ledger list` shows. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ledger/summary.h"

namespace reckon::cli {

// Empty texts match everything; all that is set must match.
struct LedgerFilter {
  std::string switch_key;  // exactly
  std::string model;       // anywhere in its name or family
  std::string verdict;     // WON and so on, "aa" or "open"; in either case of letters
  std::string device;      // anywhere in its name, vendor or instruction set
};

// Usage error where the verdict is none, or the switch none of `switches`; suggests the nearest.
[[nodiscard]] Status check_filter(const LedgerFilter& filter,
                                  std::span<const std::string> switches);

[[nodiscard]] std::vector<ledger::Summary> matching(std::vector<ledger::Summary> entries,
                                                    const LedgerFilter& filter);

}  // namespace reckon::cli
