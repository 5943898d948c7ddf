// The memory plan: what a session will take, byte for byte, before anything is allocated; and the
// budget that it must fit.
//
// Pure but for detect_budget(). Plan and observed peak agree because a session allocates exactly
// these terms. Sizes are in bytes, rounded as arenas round them; every product is checked for
// overflow, so that an impossible size is an error here and never reaches an allocator.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/plan.h"
#include "models/model.h"
#include "tensor/arena.h"

namespace reckon::engine {

// What a session is for; the memory it needs follows from it.
struct SessionShape {
  int64_t capacity = 0;  // positions of context; 0: 4096, or the model's limit where it is less
  int64_t chunk = 0;     // prefill chunk; 0: the prefill.chunk switch. Capped at the capacity.
  models::LogitRows logit_rows = models::LogitRows::kLast;
  // The most tokens of a verify pass; 0: none are made. Where the switches draft, at least what
  // they need, though no more than a chunk has.
  int64_t verify_rows = 0;
  DType kv_type = DType::kF32;  // resolved from the switches, whatever stands here
  bool drafts = false;          // whether the model's own head drafts as well
};

struct PlannedCall {
  kernels::OpCall call;
  const kernels::Choice* choice = nullptr;  // lives as long as the planner
  uint64_t count = 0;                       // calls in one pass of each kind, summed
};

struct SessionPlan {
  SessionShape shape;         // with chunk resolved
  std::set<kernels::Op> ops;  // that any pass of the session may call
  std::vector<PlannedCall> calls;
  std::vector<MemoryTerm> terms;  // weights, state, activations, scratch
  uint64_t total_bytes = 0;
};

// The passes that a session of this shape may run: prefill chunks of the given row counts (empty:
// the full chunk alone), decode where `decode` is set, and picking tokens where `pick` is.
struct PassKinds {
  std::vector<int64_t> prefill_rows;
  bool decode = true;
  bool pick = true;
  bool draft = true;  // those of the model's own head, where the shape has it
};

// Which row counts a prefill of `tokens` in chunks of `chunk` has: {chunk, remainder}.
[[nodiscard]] std::vector<int64_t> chunk_rows(int64_t tokens, int64_t chunk);

// The shape with its defaults filled in. Usage errors: a context under 1 or beyond the model's
// limit, a chunk under 1, more rows of a verify than a chunk has, drafts of a model without a head
// for them.
[[nodiscard]] Result<SessionShape> resolve_shape(const models::Model& model,
                                                 const kernels::Planner& planner,
                                                 const SessionShape& shape);

// The buffers of a session of a resolved shape: state first, then the activations.
struct SessionBuffers {
  std::vector<models::BufferSpec> state;
  std::vector<models::BufferSpec> activations;
};
[[nodiscard]] SessionBuffers session_buffers(const models::Model& model, const SessionShape& shape);
// Whether a session that calls these ops only does without the buffer.
[[nodiscard]] bool does_without(const models::BufferSpec& spec, const std::set<kernels::Op>& ops);

// The calls of the passes and of the verifies in a session of a resolved shape. Errors: what the
// planner reports for one of them; a prefill of more rows than the chunk (usage).
[[nodiscard]] Result<std::vector<PlannedCall>> plan_calls(const models::Model& model,
                                                          kernels::Planner& planner,
                                                          const SessionShape& shape,
                                                          const PassKinds& passes);

// Lists the calls of the passes and adds up the terms. The terms follow from the shape alone: the
// scratch is the most that any prefill of up to a chunk, a decode or a pick may need. Errors: see
// resolve_shape(); what the planner reports for a call of the passes; refused where a size does
// not fit in 63 bits.
[[nodiscard]] Result<SessionPlan> plan_session(
    const models::Model& model, kernels::Planner& planner, const SessionShape& shape,
    const PassKinds& passes, const kernels::Backend& backend = kernels::cpu_backend());

struct Budget {
  uint64_t bytes = 0;
  std::string source;  // "available memory", "container limit", "--memory-limit 75%"
};

// The smallest of: the backend's memory that is available now, on a CPU what is left of the
// container's limit (cgroup v2 or v1; file cache that can be dropped counts as left), and the
// user's limit if given (percent of the backend's whole memory). A usage error where the user's
// limit is no size. `held_bytes` are those of the plan that this process holds already: they are
// missing from what is available or left.
[[nodiscard]] Result<Budget> detect_budget(
    const std::optional<std::string>& user_limit, uint64_t held_bytes = 0,
    const kernels::Backend& backend = kernels::cpu_backend());

// Ok where the plan fits; else a refusal with both figures, the largest terms and what would make
// it fit: the largest smaller chunk and the longest shorter context that do, where there are any.
// `model`, `planner` and `backend` are those of the plan.
[[nodiscard]] Status check_budget(const models::Model& model, const kernels::Planner& planner,
                                  const SessionPlan& plan, const Budget& budget,
                                  const kernels::Backend& backend = kernels::cpu_backend());

}  // namespace reckon::engine
