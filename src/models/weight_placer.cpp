#include "models/weight_placer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"

namespace reckon::models {

Result<WeightRef> WeightPlacer::plan(const std::string& name, WeightRole role, const Weight& stored,
                                     std::shared_ptr<const RowSource> rows,
                                     const std::string& tensor, int64_t experts) {
  RECKON_CHECK(!loaded_ && (rows != nullptr || stored.data != nullptr));
  if (rows == nullptr) rows = std::make_shared<const StoredRows>(stored);
  TRY_ASSIGN(const Place where, place(name, role, stored, experts));
  const Weight placed{.data = nullptr,
                      .type = where.type,
                      .n = stored.n,
                      .k = stored.k,
                      .in_panels = where.panel_bytes > 0,
                      .panels_alone = where.panels_alone};
  weights_.push_back({name, tensor.empty() ? name : tensor, role, stored, placed, where.bytes,
                      where.panel_bytes, std::move(rows), where.converted});
  planned_bytes_ += where.bytes;
  planned_panel_bytes_ += where.panel_bytes;
  return WeightRef(&weights_.back().placed);
}

Status WeightPlacer::load(const LoadOptions& options, RowCache* cache) {
  RECKON_CHECK(!loaded_);
  if (cache != nullptr) cache->attach(weights_, options);
  Status filled = fill(weights_, options);
  if (!filled.ok()) {
    for (PlacedWeight& weight : weights_) weight.placed.data = weight.placed.panels = nullptr;
    return filled;
  }
  RECKON_CHECK(std::ranges::all_of(weights_, [](const PlacedWeight& weight) {
    return weight.placed.data != nullptr || weight.placed.panels_alone;
  }));
  loaded_ = true;
  return {};
}

std::vector<std::string> WeightPlacer::notes() const {
  struct Kind {
    DType from;
    DType to;
    int64_t tensors = 0;
    int64_t bytes = 0;  // more than stored
  };
  std::vector<Kind> kinds;
  for (const PlacedWeight& weight : weights_) {
    if (!weight.converted) continue;
    const DType from = weight.stored.type;
    const DType to = weight.placed.type;
    auto kind = std::ranges::find_if(
        kinds, [&](const Kind& known) { return known.from == from && known.to == to; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Kind{from, to});
    ++kind->tensors;
    kind->bytes += static_cast<int64_t>(weight.bytes) - weight.stored.bytes();
  }
  std::vector<std::string> notes;
  for (const Kind& kind : kinds) {
    notes.push_back(fmt::format("converted {} from {} to {}, which has kernels here: {}{}",
                                counted(kind.tensors, "tensor"), dtype_name(kind.from),
                                dtype_name(kind.to), kind.bytes < 0 ? "-" : "+",
                                format_bytes_short(static_cast<uint64_t>(std::abs(kind.bytes)))));
  }
  return notes;
}

}  // namespace reckon::models
