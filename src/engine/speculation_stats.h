// The account of speculative decoding: how much was accepted, what passes of each width cost, and
// from which acceptance on a depth pays.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon::engine {

class SpeculationStats {
 public:
  struct Depth {
    int64_t drafted = 0;
    int64_t reached = 0;   // of those, the ones whose predecessors in the pass were all accepted
    int64_t accepted = 0;  // of those that were reached
    // accepted / reached: the share given that all before it were accepted. None where none was.
    [[nodiscard]] std::optional<double> acceptance() const;
  };

  SpeculationStats() = default;
  SpeculationStats(std::string drafter, int64_t depth)
      : drafter_(std::move(drafter)), depth_(depth) {}

  // A pass of `drafted` drafts and a pending token: `accepted` of the drafts, `tokens` that came of
  // it (the ones accepted and one more, or fewer where the generation ended there). `pass_ns` from
  // its start to its last picked token, `draft_ns` what drafting took before.
  void add(int64_t drafted, int64_t accepted, int64_t tokens, int64_t pass_ns, int64_t draft_ns);
  // A pass that was run for its time alone.
  void add_time(int64_t rows, int64_t pass_ns);

  [[nodiscard]] const std::string& drafter() const { return drafter_; }
  [[nodiscard]] int64_t depth() const { return depth_; }    // drafts of a pass at most, as asked
  [[nodiscard]] int64_t passes() const { return passes_; }  // without those for their time
  [[nodiscard]] int64_t drafting_passes() const { return drafting_passes_; }  // with any drafts
  [[nodiscard]] int64_t tokens() const { return tokens_; }
  [[nodiscard]] double tokens_per_pass() const;  // 0 without passes
  [[nodiscard]] double mean_pass_ns() const;     // with drafting; 0 without passes
  [[nodiscard]] double mean_draft_ns() const;    // of a pass that had drafts
  [[nodiscard]] const std::vector<Depth>& depths() const { return depths_; }  // [i]: draft i + 1
  [[nodiscard]] int64_t widest() const { return static_cast<int64_t>(pass_ns_.size()); }  // rows

  // Passes of `rows` tokens, timed ones included, and their median time; none without any.
  [[nodiscard]] int64_t passes_of(int64_t rows) const;
  [[nodiscard]] std::optional<int64_t> median_pass_ns(int64_t rows) const;
  // cost(k)/cost(1): a pass of `rows` tokens and the drafting before it, in passes of one token.
  // None where one of the two widths was not timed.
  [[nodiscard]] std::optional<double> cost(int64_t rows) const;
  // The statistics of another generation of the same switches, added.
  void merge(const SpeculationStats& other);

 private:
  std::string drafter_;
  int64_t depth_ = 0;
  int64_t passes_ = 0, drafting_passes_ = 0, tokens_ = 0;
  int64_t total_ns_ = 0, draft_ns_ = 0;
  std::vector<Depth> depths_;
  std::vector<std::vector<int64_t>> pass_ns_;  // [rows - 1]
};

// The acceptance a of each draft, the same at every depth, from which on passes of `depth` drafts
// give more tokens a second than plain decode: where 1 + a + ... + a^depth (Leviathan et al. 2023,
// arXiv:2211.17192, equation 1) is `cost`. 0 where they cost no more than a plain pass; none where
// even accepting all would not pay.
[[nodiscard]] std::optional<double> break_even_acceptance(int64_t depth, double cost);

}  // namespace reckon::engine
