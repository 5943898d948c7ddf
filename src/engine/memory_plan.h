// The memory plan: what a session will take, byte for byte, before anything is allocated; and the
// budget that it must fit.
//
// Pure but for detect_budget(). Plan and observed peak agree because a session allocates exactly
// these terms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/plan.h"
#include "models/model.h"
#include "tensor/arena.h"

namespace reckon::engine {

// What a session is for; the memory it needs follows from it.
struct SessionShape {
  int64_t capacity = 4096;  // positions of context
  int64_t chunk = 0;        // prefill chunk; 0: the prefill.chunk switch. Capped at the capacity.
  models::LogitRows logit_rows = models::LogitRows::kLast;
};

struct PlannedCall {
  kernels::OpCall call;
  const kernels::Choice* choice = nullptr;  // lives as long as the planner
  uint64_t count = 0;                       // calls in one pass of each kind, summed
};

struct SessionPlan {
  SessionShape shape;  // with chunk resolved
  std::vector<PlannedCall> calls;
  std::vector<MemoryTerm> terms;  // weights, state, activations, scratch
  uint64_t total_bytes = 0;
};

// The passes that a session of this shape may run: prefill chunks of the given row counts (empty:
// the full chunk alone), and decode where `decode` is set.
struct PassKinds {
  std::vector<int64_t> prefill_rows;
  bool decode = true;
};

// Which row counts a prefill of `tokens` in chunks of `chunk` has: {chunk, remainder}.
[[nodiscard]] std::vector<int64_t> chunk_rows(int64_t tokens, int64_t chunk);

[[nodiscard]] Result<SessionPlan> plan_session(const formats::Checkpoint& checkpoint,
                                               const models::Model& model,
                                               kernels::Planner& planner, const SessionShape& shape,
                                               const PassKinds& passes);

struct Budget {
  uint64_t bytes = 0;
  std::string source;  // "available memory", "container limit", "--memory-limit 75%"
};

// The smallest of: memory available now, the container's limit (cgroup v2 or v1, what is left of
// it), and the user's limit if given.
[[nodiscard]] Result<Budget> detect_budget(const std::optional<std::string>& user_limit);

// Ok where the plan fits; else a refusal with both figures, the largest terms and what would make
// it fit (a smaller chunk or a shorter context, computed).
[[nodiscard]] Status check_budget(const SessionPlan& plan, const Budget& budget);

}  // namespace reckon::engine
