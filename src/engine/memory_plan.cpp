#include "engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/bytes.h"
#include "engine/draft_head.h"
#include "engine/speculation_options.h"
#include "kernels/recorder.h"
#include "tensor/dtype.h"

namespace reckon::engine {
namespace {

using kernels::Phase;
using models::BufferSpec;
using models::LogitRows;

constexpr int64_t kDefaultCapacity = 4096;

// Runs passes of one shape on nothing but their sizes.
class DryRun {
 public:
  DryRun(const models::Model& model, const SessionShape& shape)
      : model_(model), shape_(shape), tokens_(static_cast<size_t>(shape.chunk), 0) {
    const SessionBuffers buffers = session_buffers(model, shape);
    for (const BufferSpec& spec : buffers.state) {
      state_.push_back({nullptr, spec.type, spec.rows, spec.columns});
    }
    for (const BufferSpec& spec : buffers.activations) {
      activations_.push_back({nullptr, spec.rows, spec.columns});
    }
  }

  [[nodiscard]] Status prefill(kernels::Recorder& recorder, int64_t rows) const {
    return pass(recorder, Phase::kPrefill, rows, shape_.logit_rows);
  }
  [[nodiscard]] Status decode(kernels::Recorder& recorder) const {
    return pass(recorder, Phase::kDecode, 1, LogitRows::kLast);
  }
  [[nodiscard]] Status verify(kernels::Recorder& recorder, int64_t rows) const {
    return pass(recorder, Phase::kVerify, rows, LogitRows::kAll);
  }
  [[nodiscard]] int64_t verify_rows() const { return shape_.verify_rows; }
  // A pass of the draft head that fills in its cache, and one that drafts; nothing where the
  // session has none.
  [[nodiscard]] Status draft(kernels::Recorder& recorder, int64_t rows) const {
    if (!shape_.drafts) return {};
    recorder.set_phase(draft_phase(rows, shape_.verify_rows));
    TRY(draft_pass(recorder, rows, 0));
    TRY(draft_pass(recorder, rows, 1));
    return shape_.logit_rows == LogitRows::kAll ? draft_pass(recorder, rows, rows) : Status();
  }
  // Picking the next token after each of the rows of a pass.
  [[nodiscard]] Status pick(kernels::Recorder& recorder, int64_t rows = 1) const {
    recorder.set_phase(Phase::kDecode);
    std::vector<kernels::Pick> picks(static_cast<size_t>(rows));
    return recorder.sample(activations_.back().row_range(0, rows), {}, picks);
  }

 private:
  [[nodiscard]] Status draft_pass(kernels::Recorder& recorder, int64_t rows, int64_t wanted) const {
    const models::DraftPass pass{.tokens = std::span(tokens_).first(static_cast<size_t>(rows)),
                                 .wanted = wanted};
    TRY_ASSIGN(const models::DraftOutputs outputs,
               model_.draft(recorder, pass, state_, activations_));
    (void)outputs;
    return {};
  }

  [[nodiscard]] Status pass(kernels::Recorder& recorder, Phase phase, int64_t rows,
                            LogitRows logit_rows) const {
    recorder.set_phase(phase);
    const models::Pass pass{.tokens = std::span(tokens_).first(static_cast<size_t>(rows)),
                            .first_position = 0,
                            .logit_rows = logit_rows,
                            .observe = {}};
    return model_.forward(recorder, pass, state_, activations_);
  }

  const models::Model& model_;
  const SessionShape& shape_;
  std::vector<int32_t> tokens_;
  std::vector<models::StateBuffer> state_;
  std::vector<Activation> activations_;
};

// What the passes of a session may need, over every row count that they may have.
struct Needs {
  // For each chunk from 0 (decode alone) to the shape's: the most scratch. A call that the planner
  // refuses will be refused when it is made, so that it needs none.
  std::vector<uint64_t> scratch_by_chunk;
  std::set<kernels::Op> ops;
};

Result<Needs> needs_of(const DryRun& dry_run, const kernels::Planner& planner, int64_t chunk) {
  kernels::Planner probe = planner;  // what it memoises here is of no use later
  Needs needs;
  std::vector<uint64_t>& largest = needs.scratch_by_chunk;
  for (int64_t rows = 0; rows <= chunk; ++rows) {
    kernels::Recorder recorder(probe);
    if (rows == 0) {
      TRY(dry_run.decode(recorder));
      TRY(dry_run.pick(recorder));
      TRY(dry_run.draft(recorder, 1));
      for (int64_t v = 1; v <= dry_run.verify_rows(); ++v) {
        TRY(dry_run.verify(recorder, v));
        TRY(dry_run.pick(recorder, v));
      }
    } else {
      TRY(dry_run.prefill(recorder, rows));
      TRY(dry_run.draft(recorder, rows));
    }
    largest.push_back(largest.empty() ? 0 : largest.back());
    for (const auto& counted : recorder.calls()) {
      needs.ops.insert(counted.call.op);
      const auto choice = probe.choose(counted.call);
      if (choice.ok()) largest.back() = std::max(largest.back(), (*choice)->scratch_bytes);
    }
  }
  return needs;
}

// Adds a term of `bytes`; false where the sum leaves 63 bits.
bool add_term(SessionPlan& plan, MemoryTag tag, const std::string& name, uint64_t bytes) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  if (bytes == 0) return true;
  if (bytes > kMost) return false;
  plan.terms.push_back({tag, name, arena_rounded(bytes)});
  return add_checked(plan.total_bytes, plan.terms.back().bytes, plan.total_bytes) &&
         plan.total_bytes <= kMost;
}

bool add_buffers(SessionPlan& plan, const std::vector<BufferSpec>& specs) {
  for (const BufferSpec& spec : specs) {
    if (does_without(spec, plan.ops)) continue;
    uint64_t values = 0;
    uint64_t bytes = 0;
    if (!multiply_checked(static_cast<uint64_t>(spec.rows), static_cast<uint64_t>(spec.columns),
                          values) ||
        !multiply_checked(values, static_cast<uint64_t>(block_bytes(spec.type)), bytes) ||
        !add_term(plan, spec.tag, spec.name, bytes)) {
      return false;
    }
  }
  return true;
}

// The terms of a session of a resolved shape; false where they leave 63 bits.
bool add_terms(SessionPlan& plan, const models::Model& model, const kernels::Backend& backend,
               uint64_t scratch_bytes) {
  const SessionBuffers buffers = session_buffers(model, plan.shape);
  const models::ModelInfo& info = model.info();
  return add_term(plan, MemoryTag::kWeights, "weights", info.weight_bytes - info.panel_bytes) &&
         add_term(plan, MemoryTag::kWeights, "weights in panels", info.panel_bytes) &&
         add_buffers(plan, buffers.state) && add_buffers(plan, buffers.activations) &&
         add_term(plan, MemoryTag::kActivations, "step inputs",
                  backend.step_bytes(plan.shape.chunk)) &&
         add_term(plan, MemoryTag::kScratch, "scratch", scratch_bytes);
}

// ---- the refusal ----

std::string largest_terms(const SessionPlan& plan) {
  std::vector<MemoryTerm> terms = plan.terms;
  std::ranges::stable_sort(terms, std::greater<>(), &MemoryTerm::bytes);
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(terms.size(), 4); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", terms[i].name, format_bytes(terms[i].bytes));
  }
  return text;
}

// Sessions of other shapes that would fit the budget.
class Alternatives {
 public:
  // `scratch` is the Needs' of the plan's shape.
  Alternatives(const models::Model& model, const kernels::Backend& backend, const SessionPlan& plan,
               std::vector<uint64_t> scratch, uint64_t budget)
      : model_(model),
        backend_(backend),
        shape_(plan.shape),
        ops_(plan.ops),
        scratch_(std::move(scratch)),
        budget_(budget) {}

  // The largest smaller chunk, the longest shorter context; 0 where none fits.
  [[nodiscard]] int64_t largest_chunk() const {
    return largest(shape_.chunk - 1, [&](int64_t chunk) { return fits(shape_.capacity, chunk); });
  }
  [[nodiscard]] int64_t longest_context(int64_t chunk) const {
    return largest(shape_.capacity - 1, [&](int64_t capacity) { return fits(capacity, chunk); });
  }

 private:
  // The largest value in [1, limit] that fits, where everything below one that fits does, too.
  template <typename Fits>
  [[nodiscard]] static int64_t largest(int64_t limit, const Fits& fits) {
    int64_t low = 0;
    int64_t high = limit;
    while (low < high) {
      const int64_t middle = low + (high - low + 1) / 2;
      if (fits(middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  [[nodiscard]] bool fits(int64_t capacity, int64_t chunk) const {
    SessionPlan plan;
    plan.shape = shape_;
    plan.ops = ops_;
    plan.shape.capacity = capacity;
    plan.shape.chunk = std::min(chunk, capacity);
    return add_terms(plan, model_, backend_, scratch_[static_cast<size_t>(plan.shape.chunk)]) &&
           plan.total_bytes <= budget_;
  }

  const models::Model& model_;
  const kernels::Backend& backend_;
  const SessionShape& shape_;
  const std::set<kernels::Op>& ops_;
  std::vector<uint64_t> scratch_;
  uint64_t budget_;
};

std::string remedy(const Alternatives& alternatives, const SessionShape& shape) {
  const int64_t chunk = alternatives.largest_chunk();
  const int64_t context = alternatives.longest_context(shape.chunk);
  if (chunk > 0 && context > 0) {
    return fmt::format("a chunk of {} or a context of {} would fit", chunk, context);
  }
  if (chunk > 0) return fmt::format("a chunk of {} would fit", chunk);
  if (context > 0) return fmt::format("a context of {} would fit", context);
  const int64_t shortest = alternatives.longest_context(1);
  if (shortest > 0) {
    return fmt::format("a context of {} with a chunk of 1 would fit", shortest);
  }
  return "no smaller chunk or context would make it fit";
}

}  // namespace

std::vector<int64_t> chunk_rows(int64_t tokens, int64_t chunk) {
  std::vector<int64_t> rows;
  if (tokens >= chunk) rows.push_back(chunk);
  if (tokens % chunk != 0) rows.push_back(tokens % chunk);
  return rows;
}

Result<SessionShape> resolve_shape(const models::Model& model, const kernels::Planner& planner,
                                   const SessionShape& shape) {
  const int64_t limit = model.info().context_limit;
  SessionShape resolved = shape;
  if (shape.capacity == 0) resolved.capacity = std::min(kDefaultCapacity, limit);
  if (resolved.capacity < 1 || resolved.capacity > limit) {
    return usage_error(fmt::format("a context of {} positions; this model takes 1 to {}",
                                   resolved.capacity, limit));
  }
  if (shape.chunk == 0) resolved.chunk = planner.prefill_chunk();
  if (resolved.chunk < 1) {
    return usage_error(fmt::format("a chunk of {} tokens; expected 1 or more", resolved.chunk));
  }
  resolved.chunk = std::min(resolved.chunk, resolved.capacity);
  const bool has_head = model.info().has_draft_head;
  const SpeculationOptions speculation = speculation_options(planner.switches(), has_head);
  if (speculation.drafter == DrafterKind::kMtp) resolved.drafts = true;
  const int64_t drafting = speculation_rows(speculation);
  resolved.verify_rows = std::max(resolved.verify_rows, std::min(drafting, resolved.chunk));
  if (resolved.verify_rows < 0 || resolved.verify_rows > resolved.chunk) {
    return usage_error(fmt::format("verifies of {} tokens in a session whose chunk is {}",
                                   resolved.verify_rows, resolved.chunk));
  }
  if (resolved.drafts && !has_head) {
    return usage_error("drafts of the model's own head, but it was built without one");
  }
  resolved.kv_type = planner.kv_type();
  return resolved;
}

SessionBuffers session_buffers(const models::Model& model, const SessionShape& shape) {
  const int64_t of_prefill = shape.logit_rows == LogitRows::kAll ? shape.chunk : 1;
  const int64_t logit_rows = std::max(of_prefill, shape.verify_rows);
  const int64_t draft_rows = shape.drafts ? of_prefill : 0;
  return {model.state_specs({.capacity = shape.capacity,
                             .kv_type = shape.kv_type,
                             .rollback = shape.verify_rows,
                             .drafts = shape.drafts}),
          model.activation_specs(
              {.rows = shape.chunk, .logit_rows = logit_rows, .draft_rows = draft_rows})};
}

bool does_without(const BufferSpec& spec, const std::set<kernels::Op>& ops) {
  return spec.only_for && !ops.contains(*spec.only_for);
}

Result<std::vector<PlannedCall>> plan_calls(const models::Model& model, kernels::Planner& planner,
                                            const SessionShape& shape, const PassKinds& passes) {
  const DryRun dry_run(model, shape);
  const auto draft = [&](kernels::Recorder& recorder, int64_t rows) -> Status {
    return passes.draft ? dry_run.draft(recorder, rows) : Status();
  };
  kernels::Recorder recorder(planner);
  const std::vector<int64_t> full_chunk{shape.chunk};
  for (const int64_t rows : passes.prefill_rows.empty() ? full_chunk : passes.prefill_rows) {
    if (rows < 1 || rows > shape.chunk) {
      return usage_error(fmt::format("a prefill pass of {} rows in a session whose chunk is {}",
                                     rows, shape.chunk));
    }
    TRY(dry_run.prefill(recorder, rows));
    TRY(draft(recorder, rows));
  }
  if (passes.decode) TRY(dry_run.decode(recorder));
  if (passes.decode) TRY(draft(recorder, 1));
  if (passes.pick) TRY(dry_run.pick(recorder));
  for (int64_t rows = 1; rows <= shape.verify_rows; ++rows) {
    TRY(dry_run.verify(recorder, rows));
    if (passes.pick && rows > 1) TRY(dry_run.pick(recorder, rows));
    TRY(draft(recorder, rows));
  }
  std::vector<PlannedCall> calls;
  for (const auto& [call, count] : recorder.calls()) {
    TRY_ASSIGN(const kernels::Choice* choice, planner.choose(call));
    calls.push_back({call, choice, count});
  }
  return calls;
}

Result<SessionPlan> plan_session(const models::Model& model, kernels::Planner& planner,
                                 const SessionShape& shape, const PassKinds& passes,
                                 const kernels::Backend& backend) {
  SessionPlan plan;
  TRY_ASSIGN(plan.shape, resolve_shape(model, planner, shape));
  TRY_ASSIGN(plan.calls, plan_calls(model, planner, plan.shape, passes));
  TRY_ASSIGN(Needs needs, needs_of(DryRun(model, plan.shape), planner, plan.shape.chunk));
  plan.ops = std::move(needs.ops);
  if (!add_terms(plan, model, backend, needs.scratch_by_chunk.back())) {
    return refused(fmt::format(
        "a context of {} positions in chunks of {} needs more memory than can be addressed",
        plan.shape.capacity, plan.shape.chunk));
  }
  return plan;
}

Status check_budget(const models::Model& model, const kernels::Planner& planner,
                    const SessionPlan& plan, const Budget& budget,
                    const kernels::Backend& backend) {
  if (plan.total_bytes <= budget.bytes) return {};
  TRY_ASSIGN(Needs needs, needs_of(DryRun(model, plan.shape), planner, plan.shape.chunk));
  const Alternatives alternatives(model, backend, plan, std::move(needs.scratch_by_chunk),
                                  budget.bytes);
  return refused(fmt::format(
      "a context of {} in chunks of {} needs {}, but {} leaves {}; the largest terms are {}; {}",
      plan.shape.capacity, plan.shape.chunk, format_bytes(plan.total_bytes), budget.source,
      format_bytes(budget.bytes), largest_terms(plan), remedy(alternatives, plan.shape)));
}

}  // namespace reckon::engine
