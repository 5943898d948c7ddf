// What a list shows of an entry, and which entries it shows. Pure and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/fold.h"

namespace reckon::ledger {

struct Summary {
  std::string id;
  EntryKind kind = EntryKind::kComparison;
  std::optional<Verdict> verdict;
  std::optional<double> effect;
  std::string metric;
  std::string switch_key;
  std::string base_value;
  std::string arm_value;
  std::string model_name;
  std::string model_family;
  std::string device_name;
  std::string device_vendor;
  std::string device_isa;
  std::string idea;
  int64_t rounds = 0;
  bool imported = false;
  EntryStatus status = EntryStatus::kOpen;
  std::string superseded_by;
  std::string lever_entry;
  std::string created;
  std::string updated;
  std::string writer;

  bool operator==(const Summary&) const = default;
};

[[nodiscard]] Summary summary_of(const Entry& entry);

}  // namespace reckon::ledger
