#include "engine/mtp_drafter.h"

#include "base/check.h"

namespace reckon::engine {

Status MtpDrafter::commit(std::span<const int32_t> tokens) {
  RECKON_CHECK(!tokens.empty());
  pending_ = tokens.back();
  return {};
}

Result<std::vector<Draft>> MtpDrafter::propose(int64_t depth, const ConfidenceGate& gate) {
  std::vector<Draft> drafts;
  int32_t token = pending_;
  for (int64_t d = 0; d < depth; ++d) {
    TRY_ASSIGN(const kernels::Pick pick, session_.draft(token));
    Draft draft{.token = pick.token, .probability = std::nullopt, .margin = pick.margin};
    if (gate.least_probability > 0) {
      TRY_ASSIGN(draft.probability, session_.draft_probability(pick.token));
    }
    if (!gate.passes(draft)) break;
    drafts.push_back(draft);
    token = draft.token;
  }
  return drafts;
}

}  // namespace reckon::engine
