#include "engine/speculation_options.h"

namespace reckon::engine {

SpeculationOptions speculation_options(const kernels::SwitchSet& switches, bool has_draft_head) {
  SpeculationOptions options;
  const auto replay = switches.number("decode.drafter", "replay");
  if (replay) {
    options.drafter = DrafterKind::kReplay;
    options.replay_probability = *replay;
  } else if (switches.get("decode.drafter") == "lookup") {
    options.drafter = DrafterKind::kLookup;
  } else if (switches.get("decode.drafter") == "mtp" && has_draft_head) {
    options.drafter = DrafterKind::kMtp;
  }
  options.automatic = switches.get("decode.mtp_depth") == "auto";
  options.depth = options.automatic ? kDeepestDraft : switches.integer("decode.mtp_depth");
  options.gate.least_probability = switches.number("decode.confidence", "prob").value_or(0);
  options.gate.least_margin = switches.number("decode.confidence", "margin").value_or(0);
  if (options.depth == 0 || options.drafter == DrafterKind::kNone) return {};
  return options;
}

bool wants_draft_head(const kernels::SwitchSet& switches) {
  return speculation_options(switches, true).drafter == DrafterKind::kMtp;
}

int64_t speculation_rows(const SpeculationOptions& options) {
  return options.drafter == DrafterKind::kNone ? 0 : options.depth + 1;
}

}  // namespace reckon::engine
