#include "engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace reckon::engine {
namespace {

using kernels::Phase;
using models::LogitRows;

Status check_tokens(std::span<const int32_t> tokens, int64_t vocabulary) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary) {
      return usage_error(fmt::format("token {} (number {} of the input) is outside 0 to {}",
                                     tokens[i], i, vocabulary - 1));
    }
  }
  return {};
}

std::span<const float> row_of(const Activation& logits, int64_t row) {
  return {logits.data + row * logits.columns, static_cast<size_t>(logits.columns)};
}

}  // namespace

Session::Session(const LoadedModel& model, const SessionOptions& options)
    : model_(model),
      planner_(std::make_unique<kernels::Planner>(options.switches, kernels::detect_cpu(),
                                                  options.variants)) {}

Result<std::unique_ptr<Session>> Session::create(const LoadedModel& model,
                                                 const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(model, options));
  TRY_ASSIGN(session->plan_,
             plan_session(model.model(), *session->planner_, options.shape, PassKinds{}));
  TRY_ASSIGN(const Budget budget, detect_budget(options.memory_limit, model.allocated_bytes()));
  TRY(check_budget(model.model(), *session->planner_, session->plan_, budget));
  TRY(model.load({session->planner_->threads(), options.load_progress}));
  TRY(session->allocate());
  return session;
}

Status Session::allocate() {
  arenas_.adopt(MemoryTag::kWeights, "weights", model_.model().info().weight_bytes);
  const auto allocate_all = [&](const std::vector<models::BufferSpec>& specs,
                                std::vector<Activation>& buffers) -> Status {
    for (const models::BufferSpec& spec : specs) {
      const uint64_t bytes = static_cast<uint64_t>(spec.rows * spec.columns) * sizeof(float);
      TRY_ASSIGN(void* memory, arenas_.allocate(spec.tag, spec.name, bytes));
      buffers.push_back({static_cast<float*>(memory), spec.rows, spec.columns});
    }
    return {};
  };
  const SessionBuffers buffers = session_buffers(model_.model(), plan_.shape);
  TRY(allocate_all(buffers.state, state_));
  TRY(allocate_all(buffers.activations, activations_));

  void* scratch = nullptr;
  uint64_t scratch_bytes = 0;
  for (const MemoryTerm& term : plan_.terms) {
    if (term.tag == MemoryTag::kScratch) scratch_bytes += term.bytes;
  }
  if (scratch_bytes > 0) {
    TRY_ASSIGN(scratch, arenas_.allocate(MemoryTag::kScratch, "scratch", scratch_bytes));
  }
  RECKON_CHECK(arenas_.total_bytes() == plan_.total_bytes);
  threads_ = std::make_unique<ThreadPool>(planner_->threads());
  dispatcher_ =
      std::make_unique<kernels::Dispatcher>(*planner_, *threads_, trace_, scratch, scratch_bytes);
  return {};
}

Result<Activation> Session::run(Phase phase, std::span<const int32_t> tokens) {
  dispatcher_->set_phase(phase);
  const LogitRows logit_rows = phase == Phase::kPrefill ? plan_.shape.logit_rows : LogitRows::kLast;
  const models::Pass pass{.tokens = tokens,
                          .first_position = position_,
                          .logit_rows = logit_rows,
                          .observe = observer_};
  TRY(model_.model().forward(*dispatcher_, pass, state_, activations_));
  const auto rows = static_cast<int64_t>(tokens.size());
  position_ += rows;
  return activations_.back().row_range(0, logit_rows == LogitRows::kAll ? rows : 1);
}

Status Session::check_room(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return usage_error("there are no tokens to run");
  const auto count = static_cast<int64_t>(tokens.size());
  if (count > capacity() - position_) {
    return usage_error(fmt::format("{} tokens after position {} do not fit in a context of {}",
                                   count, position_, capacity()));
  }
  return check_tokens(tokens, model_.model().info().vocabulary);
}

Status Session::prefill_chunks(std::span<const int32_t> tokens, const ChunkLogits& each_chunk) {
  TRY(check_room(tokens));
  while (!tokens.empty()) {
    const size_t rows = std::min(tokens.size(), static_cast<size_t>(plan_.shape.chunk));
    const int64_t first_position = position_;
    TRY_ASSIGN(const Activation logits, run(Phase::kPrefill, tokens.first(rows)));
    if (each_chunk) each_chunk(first_position, logits);
    tokens = tokens.subspan(rows);
  }
  return {};
}

Result<std::span<const float>> Session::prefill(std::span<const int32_t> tokens) {
  std::span<const float> last;
  TRY(prefill_chunks(tokens,
                     [&](int64_t, Activation logits) { last = row_of(logits, logits.rows - 1); }));
  return last;
}

Status Session::prefill_all(std::span<const int32_t> tokens, const ChunkLogits& each_chunk) {
  RECKON_CHECK(plan_.shape.logit_rows == LogitRows::kAll);
  return prefill_chunks(tokens, each_chunk);
}

Result<std::span<const float>> Session::decode(int32_t token) {
  const std::span<const int32_t> tokens(&token, 1);
  TRY(check_room(tokens));
  TRY_ASSIGN(const Activation logits, run(Phase::kDecode, tokens));
  return row_of(logits, 0);
}

int64_t Session::capacity() const {
  return plan_.shape.capacity;
}

Status Session::truncate(int64_t position) {
  if (position < 0 || position > position_) {
    return usage_error(fmt::format("cannot go back to position {}: the session stands at {}",
                                   position, position_));
  }
  position_ = position;
  return {};
}

void Session::observe(std::function<void(int64_t layer, Activation hidden)> observer) {
  observer_ = std::move(observer);
}

}  // namespace reckon::engine
