// How a session speculates, from its switches.
#pragma once

#include <cstdint>

#include "engine/drafter.h"
#include "kernels/switches.h"

namespace reckon::engine {

enum class DrafterKind : uint8_t { kNone, kLookup, kReplay, kMtp };

struct SpeculationOptions {
  DrafterKind drafter = DrafterKind::kNone;  // kNone: plain decode
  double replay_probability = 0;
  int64_t depth = 0;       // drafts of a pass at most, 1 or more where there is a drafter
  bool automatic = false;  // as many of them as pay (engine/draft_depth.h)
  ConfidenceGate gate;
};

inline constexpr int64_t kDeepestDraft = 8;

// From decode.drafter, decode.mtp_depth and decode.confidence. `mtp` drafts nothing without a head.
[[nodiscard]] SpeculationOptions speculation_options(const kernels::SwitchSet& switches,
                                                     bool has_draft_head);
// Whether a model that has a head should be built with it.
[[nodiscard]] bool wants_draft_head(const kernels::SwitchSet& switches);

// Tokens of its widest pass: the pending one and the drafts; 0 where nothing is drafted.
[[nodiscard]] int64_t speculation_rows(const SpeculationOptions& options);

}  // namespace reckon::engine
