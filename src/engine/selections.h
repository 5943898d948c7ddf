// The experts that the rows of one text were routed to, by layer and position: recorded from one
// session (Session::observe_routes) and compared with those of another, or forced on it, so that
// what is left of a difference in results is rounding (docs/numerics.md).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/model.h"

namespace reckon::engine {

struct SelectionFlips {
  int64_t selections = 0;  // of a row and an expert
  int64_t flips = 0;       // that were recorded otherwise
};

class Selections {
 public:
  // Of the rows from `first_position` on; all in host memory. What was recorded of a position
  // before is forgotten.
  void record(int64_t first_position, const models::Routed& routed);
  // Puts the recorded experts in place of those selected, with the weights that the logits at hand
  // give them. Rows of which nothing is recorded stay.
  void force(int64_t first_position, const models::Routed& routed) const;
  void count(int64_t first_position, const models::Routed& routed, SelectionFlips& flips) const;

 private:
  // Null where nothing is recorded.
  [[nodiscard]] const std::vector<int32_t>* find(int64_t layer, int64_t position) const;

  std::map<std::pair<int64_t, int64_t>, std::vector<int32_t>> experts_;  // by layer and position
};

}  // namespace reckon::engine
