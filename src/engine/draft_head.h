// The model's own head that drafts tokens, over one session: keeps its cache in step with the
// model's passes, and proposes tokens greedily, one deeper at a time (docs/models.md).
//
// Row t of the head pairs what the model left of position t with the token at t + 1, so that its
// cache is always one token behind: the rows of a pass are filled in before the next one, which
// brings the missing token, or when drafts are asked for. Drafted rows are written over later.
//
// Used from the session's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/state_file.h"
#include "kernels/backend.h"
#include "models/model.h"

namespace reckon::engine {

// The phase in which a pass of the head is planned and run, like the model's pass of as many rows.
[[nodiscard]] kernels::Phase draft_phase(int64_t rows, int64_t verify_rows);

// Told of the outputs of every row of the head, on the host; valid during the call.
using DraftObserver =
    std::function<void(int64_t first_position, Activation hidden, Activation logits)>;

// Told of what was selected for the rows from `first_position` on, before the experts run; the
// selection may be changed.
using RoutedRows = std::function<void(int64_t first_position, const models::Routed& routed)>;
// As a pass of rows up to before position `end` takes it.
[[nodiscard]] models::RouteObserver rows_before(int64_t end, const RoutedRows& observer);

class DraftHead {
 public:
  // All outlive the head; the buffers are made for drafts.
  DraftHead(const models::Model& model, kernels::Executor& executor, models::State state,
            models::Buffers activations, int64_t capacity, int64_t verify_rows)
      : model_(model),
        executor_(executor),
        state_(state),
        activations_(activations),
        capacity_(capacity),
        verify_rows_(verify_rows) {}

  // `history` are the tokens that the model has run. Before a pass that begins with `next`, and
  // after it.
  [[nodiscard]] Status before_pass(std::span<const int32_t> history, int32_t next);
  void after_pass(int64_t first_position);

  // The head's first choice for the token after `token`. The first call after a pass gives the
  // token that follows the history, each further one the draft before. Usage errors: no history;
  // no room in the cache.
  [[nodiscard]] Result<kernels::Pick> draft(std::span<const int32_t> history, int32_t token);

  // What the head gives the last draft's `token`: its share of the softmax of the row's logits,
  // which are brought to the host. After a draft (a CHECK), before anything else is run.
  [[nodiscard]] Result<double> probability(int32_t token);

  // The session went back to `position`, which is 0 or in reach.
  void truncate(int64_t position);
  // The earliest position, but 0, that the head can go back to without a pass of the model.
  [[nodiscard]] int64_t reach() const { return model_first_ + 1; }

  // Where the head stands behind a history of `position` tokens, 1 or more; and the same in a
  // session of which the rows from mark.first on of the model's last pass are there again.
  [[nodiscard]] DraftMark mark(int64_t position) const;
  void restore(const DraftMark& mark);
  // Of the model's last pass.
  [[nodiscard]] int64_t model_first() const { return model_first_; }

  // Needs buffers for the logits of a whole chunk; empty: none.
  void observe(DraftObserver observer) { observer_ = std::move(observer); }
  void observe_routes(RoutedRows observer) { routes_ = std::move(observer); }

 private:
  // Fills in the rows up to the history's last, whose next token is `next`; the logits of the last
  // one where `wanted` is 1.
  [[nodiscard]] Result<models::DraftOutputs> catch_up(std::span<const int32_t> history,
                                                      int32_t next, int64_t wanted);
  [[nodiscard]] Result<models::DraftOutputs> run(models::DraftPass pass);

  const models::Model& model_;
  kernels::Executor& executor_;
  models::State state_;
  models::Buffers activations_;
  int64_t capacity_;
  int64_t verify_rows_;
  int64_t model_first_ = 0;  // position of the first row of the model's last pass
  int64_t rows_ = 0;         // that are filled in
  int32_t next_ = -1;        // the token that the last of them was given
  int64_t depth_ = 0;        // drafts since the last pass
  int64_t last_row_ = 0;     // of the last draft among the outputs
  Activation last_logits_;   // its row, where the executor has it
  DraftObserver observer_;
  RoutedRows routes_;
};

}  // namespace reckon::engine
