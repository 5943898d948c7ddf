#include "models/weight_placer.h"

#include <algorithm>
#include <utility>

namespace reckon::models {

Result<WeightRef> WeightPlacer::plan(const std::string& name, WeightRole role, const Weight& stored,
                                     std::shared_ptr<const RowSource> rows) {
  RECKON_CHECK(!loaded_ && (rows != nullptr || stored.data != nullptr));
  if (rows == nullptr) rows = std::make_shared<const StoredRows>(stored);
  TRY_ASSIGN(const Place where, place(name, role, stored));
  const Weight placed{.data = nullptr, .type = where.type, .n = stored.n, .k = stored.k};
  weights_.push_back({name, role, stored, placed, where.bytes, std::move(rows)});
  planned_bytes_ += where.bytes;
  return WeightRef(&weights_.back().placed);
}

Status WeightPlacer::load(const LoadOptions& options) {
  RECKON_CHECK(!loaded_);
  Status filled = fill(weights_, options);
  if (!filled.ok()) {
    for (PlacedWeight& weight : weights_) weight.placed.data = nullptr;
    return filled;
  }
  RECKON_CHECK(std::ranges::all_of(
      weights_, [](const PlacedWeight& weight) { return weight.placed.data != nullptr; }));
  loaded_ = true;
  return {};
}

}  // namespace reckon::models
