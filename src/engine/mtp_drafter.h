// Drafts by the model's own head for it (multi-token prediction): the drafter of checkpoints that
// have one (engine/draft_head.h). It knows the margin of each draft,
// and its probability where the gate asks for one, which takes all logits to the host.
#pragma once

#include "engine/drafter.h"
#include "engine/session.h"

namespace reckon::engine {

class MtpDrafter final : public Drafter {
 public:
  // `session` is made for drafts and outlives the drafter.
  explicit MtpDrafter(Session& session) : session_(session) {}

  [[nodiscard]] std::string name() const override { return "mtp"; }
  [[nodiscard]] Status commit(std::span<const int32_t> tokens) override;
  // Errors: those of Session::draft(), among them drafts beyond the context.
  [[nodiscard]] Result<std::vector<Draft>> propose(int64_t depth,
                                                   const ConfidenceGate& gate) override;

 private:
  Session& session_;
  int32_t pending_ = 0;
};

}  // namespace reckon::engine
