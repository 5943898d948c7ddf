#include "models/model.h"

#include <algorithm>

#include "base/check.h"

namespace reckon::models {

std::optional<int64_t> rollback_of(const BufferSpec& spec) {
  switch (spec.kind) {
    case StateKind::kSlots:
      return spec.rows - 1;
    case StateKind::kRing:
      return spec.rows - spec.reads;
    case StateKind::kNone:
    case StateKind::kByPosition:
    case StateKind::kLastPass:
      break;
  }
  return std::nullopt;
}

PositionRange needed_from(const BufferSpec& spec, int64_t position) {
  switch (spec.kind) {
    case StateKind::kByPosition:
      return {0, position};
    case StateKind::kSlots:
      return {position, 1};
    case StateKind::kRing: {
      const int64_t count = std::min(spec.reads, position);
      return {position - count, count};
    }
    case StateKind::kNone:
    case StateKind::kLastPass:
      break;
  }
  return {};
}

int64_t row_of_position(const BufferSpec& spec, int64_t position) {
  return spec.kind == StateKind::kByPosition ? position : position % spec.rows;
}

Result<DraftOutputs> Model::draft(kernels::Ops& /*ops*/, const DraftPass& /*pass*/, State /*state*/,
                                  Buffers /*activations*/) const {
  RECKON_CHECK(info().has_draft_head);
  return failed("this model drafts nothing");
}

}  // namespace reckon::models
