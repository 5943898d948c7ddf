// How entries point at each other: chains of supersessions, and levers that were pulled.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "ledger/summary.h"

namespace reckon::ledger {

struct Chain {
  // The next one first, to the end of the chain; a ring is followed once. Of an entry that the
  // ledger does not have there is the id alone.
  std::vector<Summary> superseded_by;
  std::vector<Summary> supersedes;  // directly or over others, oldest first
  std::vector<Summary> lever_of;    // entries whose lever it pulled, oldest first
};

// Of all entries of a ledger. Thread-safe once it is made.
class Chains {
 public:
  explicit Chains(std::vector<Summary> entries);  // oldest first
  [[nodiscard]] Chain of(const std::string& id) const;

 private:
  using Places = std::unordered_map<std::string, std::vector<size_t>>;
  [[nodiscard]] std::vector<Summary> superseded_by(const std::string& id) const;
  [[nodiscard]] std::vector<Summary> supersedes(const std::string& id) const;
  [[nodiscard]] std::vector<Summary> at(const std::vector<size_t>& places) const;

  std::vector<Summary> entries_;
  std::unordered_map<std::string, size_t> places_;  // by id
  Places superseded_;                               // by the id of who superseded them
  Places levers_;                                   // by the id of who pulled them
};

}  // namespace reckon::ledger
