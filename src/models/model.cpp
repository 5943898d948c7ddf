#include "models/model.h"

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
      break;
  }
  return std::nullopt;
}

Result<DraftOutputs> Model::draft(kernels::Ops& /*ops*/, const DraftPass& /*pass*/, State /*state*/,
                                  Buffers /*activations*/) const {
  RECKON_CHECK(info().has_draft_head);
  return failed("this model drafts nothing");
}

}  // namespace reckon::models
