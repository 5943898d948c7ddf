#include "engine/draft_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace reckon::engine {

using models::DraftOutputs;
using models::DraftPass;

kernels::Phase draft_phase(int64_t rows, int64_t verify_rows) {
  if (rows == 1) return kernels::Phase::kDecode;
  return rows <= verify_rows ? kernels::Phase::kVerify : kernels::Phase::kPrefill;
}

models::RouteObserver rows_before(int64_t end, const RoutedRows& observer) {
  if (!observer) return {};
  return [end, &observer](const models::Routed& routed) {
    observer(end - routed.selection.rows, routed);
  };
}

Status DraftHead::before_pass(std::span<const int32_t> history, int32_t next) {
  depth_ = 0;
  const auto position = static_cast<int64_t>(history.size());
  if (rows_ == position && next != next_) rows_ = std::max<int64_t>(0, position - 1);
  if (rows_ == position) return {};
  TRY_ASSIGN(const DraftOutputs outputs, catch_up(history, next, 0));
  (void)outputs;
  return {};
}

void DraftHead::after_pass(int64_t first_position) {
  RECKON_CHECK(rows_ == first_position);
  model_first_ = first_position;
}

Result<kernels::Pick> DraftHead::draft(std::span<const int32_t> history, int32_t token) {
  const auto position = static_cast<int64_t>(history.size());
  if (position == 0) return usage_error("there is nothing to draft from: no token was run");
  if (position + depth_ > capacity_) {
    return usage_error(fmt::format("draft {} after position {} does not fit in a context of {}",
                                   depth_ + 1, position, capacity_));
  }
  DraftOutputs outputs;
  if (depth_ == 0) {
    rows_ = std::min(rows_, position - 1);  // the last row's logits are wanted
    TRY_ASSIGN(outputs, catch_up(history, token, 1));
  } else {
    TRY_ASSIGN(outputs, run({.tokens = {&token, 1},
                             .first_position = position - 1 + depth_,
                             .source = DraftPass::Source::kDraft,
                             .source_row = last_row_,
                             .wanted = 1}));
  }
  ++depth_;
  last_row_ = outputs.logits.rows - 1;
  last_logits_ = outputs.logits.row_range(last_row_, 1);
  TRY(executor_.start_sample(last_logits_, {}));
  TRY_ASSIGN(const std::vector<kernels::Pick> picks, executor_.take_picks());
  return picks[0];
}

Result<double> DraftHead::probability(int32_t token) {
  RECKON_CHECK(depth_ > 0);
  TRY_ASSIGN(const Activation view, executor_.host_view(last_logits_));
  const std::span<const float> logits(view.data, static_cast<size_t>(view.columns));
  const float highest = std::ranges::max(logits);
  double sum = 0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - highest));
  return static_cast<double>(std::exp(logits[static_cast<size_t>(token)] - highest)) / sum;
}

void DraftHead::truncate(int64_t position) {
  depth_ = 0;
  rows_ = std::clamp<int64_t>(position - 1, 0, rows_);
  if (position == 0) model_first_ = 0;
  RECKON_CHECK(rows_ >= model_first_);
}

DraftMark DraftHead::mark(int64_t position) const {
  return {std::min(rows_, position - 1), rows_, next_};
}

void DraftHead::restore(const DraftMark& mark) {
  model_first_ = mark.first;
  rows_ = mark.rows;
  next_ = mark.next;
  depth_ = 0;
}

Result<DraftOutputs> DraftHead::catch_up(std::span<const int32_t> history, int32_t next,
                                         int64_t wanted) {
  const auto position = static_cast<int64_t>(history.size());
  RECKON_CHECK(rows_ >= model_first_ && rows_ < position);
  const auto tokens_of = history.subspan(static_cast<size_t>(rows_ + 1));
  std::vector<int32_t> tokens(tokens_of.begin(), tokens_of.end());
  tokens.push_back(next);
  const DraftPass pass{.tokens = tokens,
                       .first_position = rows_,
                       .source = DraftPass::Source::kModel,
                       .source_row = rows_ - model_first_,
                       .wanted = observer_ ? position - rows_ : wanted};
  TRY_ASSIGN(const DraftOutputs outputs, run(pass));
  rows_ = position;
  next_ = next;
  return outputs;
}

Result<DraftOutputs> DraftHead::run(DraftPass pass) {
  const auto rows = static_cast<int64_t>(pass.tokens.size());
  pass.observe_routes = rows_before(pass.first_position + rows, routes_);
  const kernels::Step step{.phase = draft_phase(rows, verify_rows_),
                           .tokens = pass.tokens,
                           .first_position = pass.first_position};
  DraftOutputs outputs;
  TRY(executor_.run(step, [&](kernels::Ops& ops) -> Status {
    TRY_ASSIGN(outputs, model_.draft(ops, pass, state_, activations_));
    return {};
  }));
  if (!observer_) return outputs;
  TRY_ASSIGN(const Activation view, executor_.host_view(outputs.hidden));
  std::vector<float> hidden(view.data, view.data + view.rows * view.columns);
  TRY_ASSIGN(const Activation logits, executor_.host_view(outputs.logits));
  observer_(pass.first_position, {hidden.data(), view.rows, view.columns}, logits);
  return outputs;
}

}  // namespace reckon::engine
