#include "engine/mtp_drafter.h"

#include <algorithm>

#include "base/check.h"

namespace reckon::engine {

Status MtpDrafter::commit(std::span<const int32_t> tokens) {
  RECKON_CHECK(!tokens.empty());
  pending_ = tokens.back();
  return {};
}

Result<std::vector<Draft>> MtpDrafter::propose(int64_t depth, const ConfidenceGate& gate) {
  std::vector<Draft> drafts;
  const int64_t room = session_.capacity() - session_.position();
  int32_t token = pending_;
  for (int64_t d = 0; d < std::min(depth, room); ++d) {
    TRY_ASSIGN(const kernels::Pick pick, session_.draft(token));
    const Draft draft{.token = pick.token, .probability = std::nullopt, .margin = pick.margin};
    if (draft.token < 0 || !gate.passes(draft)) break;  // below zero: a logit is not finite
    drafts.push_back(draft);
    token = draft.token;
  }
  return drafts;
}

}  // namespace reckon::engine
