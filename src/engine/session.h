// A Session: one sequence of tokens on one loaded model, with its state (KV caches, recurrent
// states), buffers, threads, switches and trace.
//
// Used from one thread at a time. Results of exact kernels do not depend on chunks or the thread
// count. Passes may still be running on a device when a call returns; whatever reads a result
// waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/draft_head.h"
#include "engine/loaded_model.h"
#include "engine/memory_plan.h"
#include "engine/state_file.h"
#include "kernels/audit.h"
#include "kernels/backend.h"
#include "kernels/trace.h"
#include "tensor/arena.h"

namespace reckon::engine {

struct SessionOptions {
  kernels::SwitchSet switches;
  SessionShape shape;
  std::optional<std::string> memory_limit;  // as typed: "8GiB", "75%"
  models::LoadProgress load_progress = {};  // of the model's weights, where they are not loaded yet
  // What the plan may choose from instead of the table of the model's backend; empty: that table.
  std::span<const kernels::Variant> variants = {};
  // Told of every weight and buffer of the session, and of what its passes read (engine/audit.h
  // makes a report of it). Null: nothing is noted. Outlives the session.
  kernels::BufferAudit* audit = nullptr;
};

class Session {
 public:
  // Plans, checks the budget (refused where it does not fit), then loads the model's weights where
  // that was not done, and allocates.
  [[nodiscard]] static Result<std::unique_ptr<Session>> create(const LoadedModel& model,
                                                               const SessionOptions& options);

  // Appends tokens in chunks and returns the logits of the last one [vocabulary]. Usage errors: no
  // tokens, a token outside the vocabulary, no room left; then nothing was run. Where the plan
  // refuses a pass (failed or usage), the chunks before it stay. Views are valid until the next
  // call.
  [[nodiscard]] Result<std::span<const float>> prefill(std::span<const int32_t> tokens);
  // The same in a session made for LogitRows::kAll (else a CHECK): calls `each_chunk` with the
  // logits of every row of each chunk.
  using ChunkLogits = std::function<void(int64_t first_position, Activation logits)>;
  [[nodiscard]] Status prefill_all(std::span<const int32_t> tokens, const ChunkLogits& each_chunk);
  // One token; the logits after it [vocabulary]. Errors as for prefill().
  [[nodiscard]] Result<std::span<const float>> decode(int32_t token);

  // Several tokens in one pass of a session made for verifies (else a CHECK); the logits after
  // each, [tokens, vocabulary]. Errors as for prefill(), and more tokens than the shape's
  // verify_rows.
  [[nodiscard]] Result<Activation> verify(std::span<const int32_t> tokens);

  // The same without looking at the logits, for pick(), pick_rows() and row_logits().
  [[nodiscard]] Status append(std::span<const int32_t> tokens);       // as prefill()
  [[nodiscard]] Status append(int32_t token);                         // as decode()
  [[nodiscard]] Status append_rows(std::span<const int32_t> tokens);  // as verify()
  // The last logits [vocabulary], copied to the host where they are not there. Valid until the next
  // call. A pass comes before (else a CHECK).
  [[nodiscard]] Result<std::span<const float>> logits();
  // Picks from the last logits, where they are: on the device. Fails where one is not finite.
  [[nodiscard]] Result<kernels::Pick> pick(const kernels::Sampling& sampling);

  // The same for single rows of the last pass's logits, of which there are last_rows(); `row` and
  // the `rows` from `first` on are among them (else a CHECK). A pick of logits that are not finite
  // is what kernels::Pick says, so that one row's do not hide the others'.
  [[nodiscard]] int64_t last_rows() const { return logits_.rows; }
  [[nodiscard]] Result<std::span<const float>> row_logits(int64_t row);
  [[nodiscard]] Result<std::vector<kernels::Pick>> pick_rows(int64_t first, int64_t rows,
                                                             const kernels::Sampling& sampling);

  // The same in two steps, with the picked token's own pass between them where the device runs
  // ahead of the host: start_pick(), then append_picked() (as append() of the token that is being
  // picked), then take_pick(). Nothing else comes between; truncate() takes the pass back.
  [[nodiscard]] bool runs_ahead() const { return executor_->runs_ahead() && !draft_head_; }
  [[nodiscard]] Status start_pick(const kernels::Sampling& sampling);
  [[nodiscard]] Status append_picked();
  [[nodiscard]] Result<kernels::Pick> take_pick();

  // Waits until every pass is done; for clocks.
  [[nodiscard]] Status wait() { return executor_->wait(); }

  [[nodiscard]] int64_t position() const { return position_; }
  [[nodiscard]] int64_t capacity() const;
  // Forgets everything from `position` on (0 <= position <= position(), else a usage error). From
  // reach() on, and at 0, that is all: the state of every position is still there. In between, the
  // tokens before `position` are run again as a prefill (errors as for one).
  [[nodiscard]] Status truncate(int64_t position);
  // The earliest position whose state is still there. 0 where a model has nothing but KV caches;
  // recurrent states go back by as many positions as the shape's verify_rows.
  [[nodiscard]] int64_t reach() const;
  // The tokens that were run, position() of them.
  [[nodiscard]] std::span<const int32_t> tokens() const { return tokens_; }

  // Before long work whose state is to be saved: a usage error on a backend other than the CPU.
  [[nodiscard]] Status check_can_save() const;
  // Puts a file of the state in the place of the one at `path`: all that another session needs to
  // go on from here with the same bits. `pending`: a token that was picked and not run. Fails as
  // check_can_save() and write_state_file() do; usage error: no token was run.
  [[nodiscard]] Status save_state(const std::string& path,
                                  std::optional<int32_t> pending = std::nullopt);
  // Goes on from where the file's session stood, in one that has run nothing (else a CHECK). There
  // are no logits before the next pass; reach() is position() where there is recurrent state.
  // Refused, with the reason, where the state is that of another model, its weights in other types,
  // or of other numerics, or does not fit this session; then it is as it was.
  [[nodiscard]] Status load_state(const StateFile& file);

  // The head that drafts, of a session whose shape says so (else a CHECK): its first choice for the
  // token after `token`. The first call after a pass gives the token picked there, each further one
  // the draft before. The last logits stay. Errors: see DraftHead::draft().
  [[nodiscard]] Result<kernels::Pick> draft(int32_t token);
  // How sure the head is of the token that draft() just gave: see DraftHead::probability().
  [[nodiscard]] Result<double> draft_probability(int32_t token);
  // Of every row of the head, in a session made for LogitRows::kAll.
  void observe_drafts(DraftObserver observer);

  [[nodiscard]] const models::Model& model() const { return model_.model(); }
  [[nodiscard]] const LoadedModel& loaded() const { return model_; }
  [[nodiscard]] kernels::Trace& trace() { return trace_; }
  [[nodiscard]] const ArenaSet& arenas() const { return arenas_; }
  [[nodiscard]] const SessionPlan& plan() const { return plan_; }
  [[nodiscard]] const kernels::Planner& planner() const { return *planner_; }
  // Observer for the residual stream of every following pass (models/model.h); empty: none.
  void observe(std::function<void(int64_t layer, Activation hidden)> observer);
  // The same for the experts that rows are routed to, also by the draft head: Selections
  // (engine/selections.h) records them, counts how they differ and forces others. On the CPU alone
  // (else a CHECK).
  void observe_routes(RoutedRows observer);

 private:
  Session(const LoadedModel& model, const SessionOptions& options);
  [[nodiscard]] Status allocate(kernels::BufferAudit* audit);
  void watch_buffers(kernels::BufferAudit& audit) const;
  [[nodiscard]] Status check_room(std::span<const int32_t> tokens) const;
  [[nodiscard]] Status prefill_chunks(std::span<const int32_t> tokens,
                                      const ChunkLogits& each_chunk);
  [[nodiscard]] Status run(kernels::Phase phase, std::span<const int32_t> tokens,
                           bool picked_token = false);
  [[nodiscard]] StateIdentity state_identity() const;
  // The specs of buffers whose rows a saved state has, with their memory.
  struct KeptBuffer {
    models::BufferSpec spec;
    char* memory = nullptr;
  };
  [[nodiscard]] std::vector<KeptBuffer> kept_buffers() const;
  [[nodiscard]] Status check_state(const StateFile& file) const;
  [[nodiscard]] Status check_buffers(const StateFile& file, int64_t position) const;

  const LoadedModel& model_;
  kernels::Backend& backend_;
  std::unique_ptr<kernels::Planner> planner_;
  SessionPlan plan_;
  ArenaSet arenas_;
  kernels::Trace trace_;
  std::unique_ptr<kernels::Executor> executor_;
  std::vector<models::StateBuffer> state_;
  std::vector<Activation> activations_;
  Activation logits_;  // of the last pass, in the backend's memory
  std::function<void(int64_t, Activation)> observer_;
  RoutedRows routes_;
  int64_t position_ = 0;
  std::vector<int32_t> tokens_;      // [position_]
  bool is_last_unknown_ = false;     // of tokens_: it is being picked
  std::optional<int64_t> rollback_;  // positions that the state can go back; none: any
  int64_t state_reach_ = 0;          // the earliest position that it can go back to
  std::unique_ptr<DraftHead> draft_head_;
};

}  // namespace reckon::engine
