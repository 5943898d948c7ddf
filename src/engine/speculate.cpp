#include "engine/speculate.h"

#include <algorithm>

#include "base/check.h"
#include "engine/broken_weights.h"
#include "engine/clock.h"

namespace reckon::engine {
namespace {

// Picks the last rows of a pass as plain decode picks them: where the logits are, but for filters
// and penalties; all rows at once where no random number is drawn.
class RowPicker {
 public:
  RowPicker(Session& session, Sampler& sampler, int64_t rows)
      : session_(session), sampler_(sampler), first_(session.last_rows() - rows), rows_(rows) {}

  Result<kernels::Pick> operator()(int64_t row) {
    return explained(session_.loaded(), picked(row));
  }

 private:
  Result<kernels::Pick> picked(int64_t row) {
    if (sampler_.needs_logits()) {
      TRY_ASSIGN(const std::span<const float> logits, session_.row_logits(first_ + row));
      return sampler_.pick(logits);
    }
    if (!sampler_.greedy()) {
      TRY_ASSIGN(const auto picks, session_.pick_rows(first_ + row, 1, sampler_.next()));
      return checked(picks[0]);
    }
    if (greedy_.empty()) {
      TRY_ASSIGN(greedy_, session_.pick_rows(first_, rows_, sampler_.next()));
    }
    return checked(greedy_[static_cast<size_t>(row)]);
  }

  Session& session_;
  Sampler& sampler_;
  int64_t first_, rows_;  // of the session's last pass
  std::vector<kernels::Pick> greedy_;
};

}  // namespace

Result<Judgement> judge_drafts(std::span<const Draft> drafts, const PickRow& pick,
                               const TakePick& take) {
  Judgement judgement;
  for (size_t row = 0; row <= drafts.size(); ++row) {
    TRY_ASSIGN(const kernels::Pick picked, pick(static_cast<int64_t>(row)));
    judgement.tokens.push_back(picked.token);
    const bool accepted = row < drafts.size() && drafts[row].token == picked.token;
    if (accepted) ++judgement.accepted;
    judgement.ended = !take(picked);
    if (judgement.ended || !accepted) break;
  }
  return judgement;
}

Speculator::Speculator(Session& session, Drafter& drafter, Sampler& sampler,
                       const SpeculationOptions& options)
    : session_(session),
      drafter_(drafter),
      sampler_(sampler),
      gate_(options.gate),
      depth_(std::min(options.depth, session.plan().shape.verify_rows - 1), options.automatic),
      stats_(drafter.name(), options.depth) {}

Result<std::vector<Draft>> Speculator::draft(int64_t tokens_left) {
  const int64_t room = session_.capacity() - session_.position() - 1;
  const int64_t depth = std::min({depth_.next(), room, tokens_left - 1});
  if (depth < 1) return std::vector<Draft>();
  return drafter_.propose(depth, gate_);
}

Status Speculator::run_rows(int32_t pending, std::span<const Draft> drafts) {
  if (drafts.empty()) return session_.append(pending);
  std::vector<int32_t> tokens{pending};
  for (const Draft& draft : drafts) tokens.push_back(draft.token);
  return session_.append_rows(tokens);
}

Result<Judgement> Speculator::judge(std::span<const Draft> drafts, const TakePick& take) {
  const auto rows = static_cast<int64_t>(drafts.size()) + 1;
  return judge_drafts(drafts, RowPicker(session_, sampler_, rows), take);
}

// One pass: what it picked.
Result<Judgement> Speculator::step(int32_t pending, int64_t tokens_left, const TakePick& take) {
  int64_t taking_ns = 0;
  const TakePick timed_take = [&](const kernels::Pick& pick) {
    const int64_t start = now_ns();
    const bool more = take(pick);
    taking_ns += now_ns() - start;
    return more;
  };
  const int64_t start = now_ns();
  TRY_ASSIGN(const std::vector<Draft> drafts, draft(tokens_left));
  const int64_t drafted = now_ns();
  const int64_t position = session_.position();
  TRY(run_rows(pending, drafts));
  TRY_ASSIGN(Judgement judgement, judge(drafts, timed_take));
  const int64_t end = now_ns();
  // All picked tokens but the last were run, right where they belong.
  const auto picked = static_cast<int64_t>(judgement.tokens.size());
  TRY(session_.truncate(position + picked));

  const auto count = static_cast<int64_t>(drafts.size());
  elapsed_ns_ += end - start - taking_ns;
  depth_.saw(count, judgement.accepted, end - start - taking_ns);
  stats_.add(count, judgement.accepted, picked, end - drafted - taking_ns, drafted - start);
  return judgement;
}

Status Speculator::run(int64_t max_tokens, const TakePick& take) {
  TRY_ASSIGN(Judgement judgement, judge({}, take));
  auto count = static_cast<int64_t>(judgement.tokens.size());
  while (!judgement.ended) {
    TRY(drafter_.commit(judgement.tokens));
    TRY_ASSIGN(judgement, step(judgement.tokens.back(), max_tokens - count, take));
    count += static_cast<int64_t>(judgement.tokens.size());
  }
  return {};
}

Status time_passes(Session& session, int64_t rows, int times, SpeculationStats& stats) {
  const bool possible = rows == 1 || rows <= session.plan().shape.verify_rows;
  const int64_t position = session.position();
  if (stats.passes_of(rows) > 0 || !possible || position + rows > session.capacity()) return {};
  const std::vector<int32_t> tokens(static_cast<size_t>(rows), 0);
  for (int i = -1; i < times; ++i) {
    const int64_t start = now_ns();
    TRY(rows == 1 ? session.append(tokens[0]) : session.append_rows(tokens));
    TRY_ASSIGN(const auto picks, session.pick_rows(0, rows, {}));
    RECKON_CHECK(static_cast<int64_t>(picks.size()) == rows);
    if (i >= 0) stats.add_time(rows, now_ns() - start);
    TRY(session.truncate(position));
  }
  return {};
}

}  // namespace reckon::engine
