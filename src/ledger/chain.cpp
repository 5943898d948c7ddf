#include "ledger/chain.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace reckon::ledger {

Chains::Chains(std::vector<Summary> entries) : entries_(std::move(entries)) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Summary& entry = entries_[i];
    places_.emplace(entry.id, i);
    if (!entry.superseded_by.empty()) superseded_[entry.superseded_by].push_back(i);
    if (!entry.lever_entry.empty()) levers_[entry.lever_entry].push_back(i);
  }
}

Chain Chains::of(const std::string& id) const {
  const auto pulled = levers_.find(id);
  return {superseded_by(id), supersedes(id),
          pulled == levers_.end() ? std::vector<Summary>() : at(pulled->second)};
}

std::vector<Summary> Chains::superseded_by(const std::string& id) const {
  std::vector<Summary> later;
  std::unordered_set<std::string> seen{id};
  auto found = places_.find(id);
  while (found != places_.end()) {
    const std::string& next = entries_[found->second].superseded_by;
    if (next.empty() || !seen.insert(next).second) break;
    found = places_.find(next);
    if (found == places_.end()) {
      later.emplace_back().id = next;
    } else {
      later.push_back(entries_[found->second]);
    }
  }
  return later;
}

std::vector<Summary> Chains::supersedes(const std::string& id) const {
  std::vector<size_t> earlier;
  std::unordered_set<std::string> seen{id};
  std::vector<std::string> waiting{id};
  while (!waiting.empty()) {
    const auto found = superseded_.find(waiting.back());
    waiting.pop_back();
    if (found == superseded_.end()) continue;
    for (const size_t place : found->second) {
      if (!seen.insert(entries_[place].id).second) continue;
      earlier.push_back(place);
      waiting.push_back(entries_[place].id);
    }
  }
  std::sort(earlier.begin(), earlier.end());
  return at(earlier);
}

std::vector<Summary> Chains::at(const std::vector<size_t>& places) const {
  std::vector<Summary> found;
  for (const size_t place : places) found.push_back(entries_[place]);
  return found;
}

}  // namespace reckon::ledger
