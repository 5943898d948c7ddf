#include "engine/selections.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "kernels/route_weights.h"

namespace reckon::engine {
namespace {

int64_t top_k_of(const models::Routed& routed) {
  return routed.selection.columns / 2;
}

std::span<const int32_t> ids_of(const models::Routed& routed, int64_t row) {
  const int64_t top_k = top_k_of(routed);
  return {kernels::selected_experts(routed.selection.data, row, top_k), static_cast<size_t>(top_k)};
}

}  // namespace

void Selections::record(int64_t first_position, const models::Routed& routed) {
  for (int64_t r = 0; r < routed.selection.rows; ++r) {
    const auto ids = ids_of(routed, r);
    experts_[{routed.layer, first_position + r}].assign(ids.begin(), ids.end());
  }
}

void Selections::force(int64_t first_position, const models::Routed& routed) const {
  const int64_t experts = routed.logits.columns;
  for (int64_t r = 0; r < routed.selection.rows; ++r) {
    const std::vector<int32_t>* recorded = find(routed.layer, first_position + r);
    if (recorded == nullptr) continue;
    RECKON_CHECK(static_cast<int64_t>(recorded->size()) == top_k_of(routed));
    const float* logits = routed.logits.data + r * experts;
    float* words = routed.selection.data + r * routed.selection.columns;
    std::ranges::copy(*recorded, reinterpret_cast<int32_t*>(words));
    kernels::weigh_selection(logits, experts, top_k_of(routed),
                             *std::max_element(logits, logits + experts), routed.weights, words);
  }
}

void Selections::count(int64_t first_position, const models::Routed& routed,
                       SelectionFlips& flips) const {
  for (int64_t r = 0; r < routed.selection.rows; ++r) {
    const std::vector<int32_t>* recorded = find(routed.layer, first_position + r);
    if (recorded == nullptr) continue;
    for (const int32_t id : ids_of(routed, r)) {
      ++flips.selections;
      if (!std::ranges::binary_search(*recorded, id)) ++flips.flips;
    }
  }
}

const std::vector<int32_t>* Selections::find(int64_t layer, int64_t position) const {
  const auto found = experts_.find({layer, position});
  return found == experts_.end() ? nullptr : &found->second;
}

}  // namespace reckon::engine
