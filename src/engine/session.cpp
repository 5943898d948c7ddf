#include "engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/broken_weights.h"
#include "engine/sampler.h"
#include "tensor/dtype.h"

namespace reckon::engine {
namespace {

using kernels::Phase;
using models::LogitRows;

// A text's tokens are the tokenizer's, which may have some that the model does not.
Status check_tokens(std::span<const int32_t> tokens, const LoadedModel& model) {
  const int64_t vocabulary = model.model().info().vocabulary;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary) {
      return failed(
          fmt::format("{}: token {} (number {} of the input) is none of the model's: "
                      "expected 0 to {}",
                      model.checkpoint().path(), tokens[i], i, vocabulary - 1));
    }
  }
  return {};
}

}  // namespace

Session::Session(const LoadedModel& model, const SessionOptions& options)
    : model_(model),
      backend_(model.backend()),
      planner_(std::make_unique<kernels::Planner>(
          options.switches, backend_.device(),
          options.variants.empty() ? backend_.variants() : options.variants)),
      arenas_(backend_.memory()) {}

Result<std::unique_ptr<Session>> Session::create(const LoadedModel& model,
                                                 const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(model, options));
  TRY_ASSIGN(session->plan_, plan_session(model.model(), *session->planner_, options.shape,
                                          PassKinds{}, session->backend_));
  TRY_ASSIGN(const Budget budget,
             detect_budget(options.memory_limit, model.allocated_bytes(), session->backend_));
  TRY(check_budget(model.model(), *session->planner_, session->plan_, budget, session->backend_));
  // Weights for another device are laid out by every core of the host.
  const bool on_cpu = session->backend_.device().backend == "cpu";
  TRY(model.load({on_cpu ? session->planner_->threads() : 0, options.load_progress}));
  TRY(session->allocate(options.audit));
  return session;
}

Status Session::allocate(kernels::BufferAudit* audit) {
  const models::ModelInfo& info = model_.model().info();
  arenas_.adopt(MemoryTag::kWeights, "weights", info.weight_bytes - info.panel_bytes);
  if (info.panel_bytes > 0) {
    arenas_.adopt(MemoryTag::kWeights, "weights in panels", info.panel_bytes);
  }
  const auto allocate = [&](const models::BufferSpec& spec) -> Result<void*> {
    const int64_t bytes = row_bytes(spec.type, spec.rows * spec.columns);
    if (bytes == 0 || does_without(spec, plan_.ops)) return nullptr;
    return arenas_.allocate(spec.tag, spec.name, static_cast<uint64_t>(bytes));
  };
  const SessionBuffers buffers = session_buffers(model_.model(), plan_.shape);
  for (const models::BufferSpec& spec : buffers.state) {
    TRY_ASSIGN(void* memory, allocate(spec));
    state_.push_back({memory, spec.type, spec.rows, spec.columns});
    const std::optional<int64_t> rollback = models::rollback_of(spec);
    if (rollback) rollback_ = std::min(*rollback, rollback_.value_or(*rollback));
  }
  for (const models::BufferSpec& spec : buffers.activations) {
    TRY_ASSIGN(void* memory, allocate(spec));
    activations_.push_back({static_cast<float*>(memory), spec.rows, spec.columns});
  }

  kernels::ExecutorResources resources;
  resources.max_rows = plan_.shape.chunk;
  if (const uint64_t bytes = backend_.step_bytes(plan_.shape.chunk); bytes > 0) {
    TRY_ASSIGN(resources.step_memory,
               arenas_.allocate(MemoryTag::kActivations, "step inputs", bytes));
  }
  for (const MemoryTerm& term : plan_.terms) {
    if (term.tag == MemoryTag::kScratch) resources.scratch_bytes += term.bytes;
  }
  if (resources.scratch_bytes > 0) {
    TRY_ASSIGN(resources.scratch,
               arenas_.allocate(MemoryTag::kScratch, "scratch", resources.scratch_bytes));
  }
  RECKON_CHECK(arenas_.total_bytes() == plan_.total_bytes);
  resources.audit = audit;
  if (audit != nullptr) watch_buffers(*audit);
  TRY_ASSIGN(executor_, backend_.make_executor(*planner_, trace_, resources));
  if (plan_.shape.drafts) {
    draft_head_ = std::make_unique<DraftHead>(model_.model(), *executor_, state_, activations_,
                                              plan_.shape.capacity, plan_.shape.verify_rows);
  }
  return {};
}

// Weights one by one, in place of the arenas' sum of them.
void Session::watch_buffers(kernels::BufferAudit& audit) const {
  for (const models::PlacedWeight& weight : model_.weights()) {
    if (weight.panel_bytes > 0) {
      audit.watch(MemoryTag::kWeights, weight.name + " in panels", weight.placed.panels,
                  weight.panel_bytes);
    }
    if (const uint64_t rows = weight.bytes - weight.panel_bytes; rows > 0) {
      audit.watch(MemoryTag::kWeights, weight.name, weight.placed.data, rows);
    }
  }
  for (const ArenaSet::Buffer& buffer : arenas_.buffers()) {
    if (buffer.memory == nullptr) continue;
    audit.watch(buffer.term.tag, buffer.term.name, buffer.memory, buffer.term.bytes);
  }
}

Status Session::run(Phase phase, std::span<const int32_t> tokens, bool picked_token) {
  if (draft_head_) TRY(draft_head_->before_pass(tokens_, tokens[0]));
  const LogitRows logit_rows = phase == Phase::kPrefill  ? plan_.shape.logit_rows
                               : phase == Phase::kVerify ? LogitRows::kAll
                                                         : LogitRows::kLast;
  models::Pass pass{
      .tokens = tokens, .first_position = position_, .logit_rows = logit_rows, .observe = {}};
  pass.observe_routes = rows_before(position_ + static_cast<int64_t>(tokens.size()), routes_);
  Status observed;
  if (observer_) {
    pass.observe = [&](int64_t layer, Activation hidden) {
      const Result<Activation> view = executor_->host_view(hidden);
      if (view.ok()) {
        observer_(layer, *view);
      } else if (observed.ok()) {
        observed = view.error();
      }
    };
  }
  const kernels::Step step{.phase = phase,
                           .tokens = tokens,
                           .first_position = position_,
                           .repeatable = phase != Phase::kPrefill && !observer_ && !routes_,
                           .picked_token = picked_token};
  TRY(executor_->run(step, [&](kernels::Ops& ops) {
    return model_.model().forward(ops, pass, state_, activations_);
  }));
  TRY(observed);
  const auto rows = static_cast<int64_t>(tokens.size());
  if (draft_head_) draft_head_->after_pass(position_);
  position_ += rows;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  is_last_unknown_ = picked_token;
  if (rollback_) state_reach_ = std::max(state_reach_, position_ - *rollback_);
  logits_ = activations_.back().row_range(0, logit_rows == LogitRows::kAll ? rows : 1);
  return {};
}

Status Session::check_room(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return usage_error("there are no tokens to run");
  const auto count = static_cast<int64_t>(tokens.size());
  if (count > capacity() - position_) {
    return usage_error(fmt::format("{} tokens after position {} do not fit in a context of {}",
                                   count, position_, capacity()));
  }
  return check_tokens(tokens, model_);
}

Status Session::prefill_chunks(std::span<const int32_t> tokens, const ChunkLogits& each_chunk) {
  TRY(check_room(tokens));
  while (!tokens.empty()) {
    const size_t rows = std::min(tokens.size(), static_cast<size_t>(plan_.shape.chunk));
    const int64_t first_position = position_;
    TRY(run(Phase::kPrefill, tokens.first(rows)));
    if (each_chunk) {
      TRY_ASSIGN(const Activation view, executor_->host_view(logits_));
      each_chunk(first_position, view);
    }
    tokens = tokens.subspan(rows);
  }
  return {};
}

Result<std::span<const float>> Session::logits() {
  return row_logits(logits_.rows - 1);
}

Result<std::span<const float>> Session::row_logits(int64_t row) {
  RECKON_CHECK(row >= 0 && row < logits_.rows);
  TRY_ASSIGN(const Activation view, executor_->host_view(logits_.row_range(row, 1)));
  return std::span<const float>(view.data, static_cast<size_t>(view.columns));
}

Status Session::append(std::span<const int32_t> tokens) {
  return prefill_chunks(tokens, {});
}

Status Session::append(int32_t token) {
  const std::span<const int32_t> tokens(&token, 1);
  TRY(check_room(tokens));
  return run(Phase::kDecode, tokens);
}

Result<std::span<const float>> Session::prefill(std::span<const int32_t> tokens) {
  TRY(append(tokens));
  return logits();
}

Status Session::prefill_all(std::span<const int32_t> tokens, const ChunkLogits& each_chunk) {
  RECKON_CHECK(plan_.shape.logit_rows == LogitRows::kAll);
  return prefill_chunks(tokens, each_chunk);
}

Result<std::span<const float>> Session::decode(int32_t token) {
  TRY(append(token));
  return logits();
}

Status Session::append_rows(std::span<const int32_t> tokens) {
  RECKON_CHECK(plan_.shape.verify_rows > 0);
  if (static_cast<int64_t>(tokens.size()) > plan_.shape.verify_rows) {
    return usage_error(fmt::format("a verify of {} tokens in a session made for {}", tokens.size(),
                                   plan_.shape.verify_rows));
  }
  TRY(check_room(tokens));
  return run(Phase::kVerify, tokens);
}

Result<Activation> Session::verify(std::span<const int32_t> tokens) {
  TRY(append_rows(tokens));
  return executor_->host_view(logits_);
}

Result<kernels::Pick> Session::pick(const kernels::Sampling& sampling) {
  TRY(start_pick(sampling));
  return take_pick();
}

Result<std::vector<kernels::Pick>> Session::pick_rows(int64_t first, int64_t rows,
                                                      const kernels::Sampling& sampling) {
  RECKON_CHECK(first >= 0 && rows > 0 && first + rows <= logits_.rows);
  TRY(executor_->start_sample(logits_.row_range(first, rows), sampling));
  return executor_->take_picks();
}

Status Session::start_pick(const kernels::Sampling& sampling) {
  RECKON_CHECK(logits_.rows > 0);
  return executor_->start_sample(logits_.row_range(logits_.rows - 1, 1), sampling);
}

Status Session::append_picked() {
  const int32_t stand_in[] = {0};
  TRY(check_room(stand_in));
  return run(Phase::kDecode, stand_in, true);
}

Result<kernels::Pick> Session::take_pick() {
  TRY_ASSIGN(const std::vector<kernels::Pick> picks, executor_->take_picks());
  TRY_ASSIGN(const kernels::Pick pick, explained(model_, checked(picks[0])));
  if (is_last_unknown_) tokens_.back() = pick.token;
  is_last_unknown_ = false;
  return pick;
}

int64_t Session::capacity() const {
  return plan_.shape.capacity;
}

Status Session::truncate(int64_t position) {
  if (position < 0 || position > position_) {
    return usage_error(fmt::format("cannot go back to position {}: the session stands at {}",
                                   position, position_));
  }
  if (position == position_) return {};
  const bool in_reach = position == 0 || position >= reach();
  std::vector<int32_t> again;  // to be run from the start
  if (!in_reach) again.assign(tokens_.begin(), tokens_.begin() + position);
  position_ = in_reach ? position : 0;
  if (position_ == 0) state_reach_ = 0;
  if (draft_head_) draft_head_->truncate(position_);
  tokens_.resize(static_cast<size_t>(position_));
  is_last_unknown_ = false;
  return in_reach ? Status() : append(again);
}

int64_t Session::reach() const {
  return std::max(state_reach_, draft_head_ ? draft_head_->reach() : 0);
}

Result<kernels::Pick> Session::draft(int32_t token) {
  RECKON_CHECK(draft_head_ != nullptr);
  TRY(check_tokens({&token, 1}, model_));
  TRY_ASSIGN(const kernels::Pick pick, draft_head_->draft(tokens_, token));
  return explained(model_, checked(pick));
}

Result<double> Session::draft_probability(int32_t token) {
  RECKON_CHECK(draft_head_ != nullptr);
  return draft_head_->probability(token);
}

void Session::observe_drafts(DraftObserver observer) {
  RECKON_CHECK(draft_head_ != nullptr && plan_.shape.logit_rows == LogitRows::kAll);
  draft_head_->observe(std::move(observer));
}

void Session::observe(std::function<void(int64_t layer, Activation hidden)> observer) {
  observer_ = std::move(observer);
}

void Session::observe_routes(RoutedRows observer) {
  RECKON_CHECK(backend_.device().backend == "cpu");
  if (draft_head_) draft_head_->observe_routes(observer);
  routes_ = std::move(observer);
}

}  // namespace reckon::engine
