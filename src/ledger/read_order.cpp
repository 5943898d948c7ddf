#include "ledger/read_order.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace reckon::ledger {

std::vector<Event> in_read_order(std::vector<Event> events) {
  std::map<std::string, std::string> latest;
  std::vector<std::tuple<std::string, std::string, size_t>> keys;
  for (size_t i = 0; i < events.size(); ++i) {
    std::string& reached = latest[events[i].writer];
    reached = std::max(reached, events[i].time);
    keys.emplace_back(reached, events[i].writer, i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<Event> sorted;
  sorted.reserve(events.size());
  for (const auto& [time, writer, i] : keys) sorted.push_back(std::move(events[i]));
  return sorted;
}

}  // namespace reckon::ledger
