// Speculative decoding: a drafter proposes the next tokens, one pass of the model verifies them
// all, and those that the model would have picked itself are kept (Leviathan, Kalman & Matias 2023,
// arXiv:2211.17192).
//
// The same tokens as plain decode, unless decode.verify_kernel asks for kernels that are not exact
// (then a row is only near what it is in a pass of its own, and so is what is picked; the drafts
// and the statistics do not mind): the exact kernels of a verify give each row the bits that it has
// in a pass of its own, and each row's token is picked as plain decode picks it, with
// the sampler's next random number where it draws. A draft is accepted where it is that token. So
// it is when sampling, too: drafts are point masses, and a draw from the model's distribution p
// that is compared with a draft d accepts it with probability p(d) and is otherwise a draw from p
// without d, renormalised, which is the rule of section 2.3; and a seed gives the same tokens with
// and without drafts. Filters and penalties are part of p.
#pragma once

#include <functional>

#include "engine/draft_depth.h"
#include "engine/drafter.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "engine/speculation_stats.h"

namespace reckon::engine {

// Picks the token after row `row` of the last pass; called once a row, in order.
using PickRow = std::function<Result<kernels::Pick>(int64_t row)>;
// Keeps a token; false where the generation ends with it.
using TakePick = std::function<bool(const kernels::Pick& pick)>;

struct Judgement {
  std::vector<int32_t> tokens;  // that were picked and taken: at least one
  int64_t accepted = 0;         // drafts that they begin with
  bool ended = false;           // take() said so at the last of them
};
// Picks row by row while drafts are right: at most one token more than there are drafts.
[[nodiscard]] Result<Judgement> judge_drafts(std::span<const Draft> drafts, const PickRow& pick,
                                             const TakePick& take);

// One generation behind the session's last pass. The session is made for verifies of
// speculation_rows() tokens, though fewer will do; used from its thread, and all outlive this.
class Speculator {
 public:
  // The drafter was told of the prompt.
  Speculator(Session& session, Drafter& drafter, Sampler& sampler,
             const SpeculationOptions& options);

  // Picks tokens until take() ends it, which it does at the latest at token number `max_tokens` and
  // at the one that the context has no room for. Then the session stands behind all tokens but the
  // last, as after plain decode.
  [[nodiscard]] Status run(int64_t max_tokens, const TakePick& take);

  [[nodiscard]] const SpeculationStats& stats() const { return stats_; }
  // Of everything behind the first token but take().
  [[nodiscard]] int64_t elapsed_ns() const { return elapsed_ns_; }

 private:
  [[nodiscard]] Result<std::vector<Draft>> draft(int64_t tokens_left);
  [[nodiscard]] Result<Judgement> step(int32_t pending, int64_t tokens_left, const TakePick& take);
  [[nodiscard]] Status run_rows(int32_t pending, std::span<const Draft> drafts);
  [[nodiscard]] Result<Judgement> judge(std::span<const Draft> drafts, const TakePick& take);

  Session& session_;
  Drafter& drafter_;
  Sampler& sampler_;
  ConfidenceGate gate_;
  DraftDepth depth_;
  SpeculationStats stats_;
  int64_t elapsed_ns_ = 0;
};

// Times `times` passes of `rows` tokens at the session's position, after one to warm up, and takes
// them back; adds them to `stats` where it has no time of that width. Nothing where the session is
// not made for them or has no room.
[[nodiscard]] Status time_passes(Session& session, int64_t rows, int times,
                                 SpeculationStats& stats);

}  // namespace reckon::engine
