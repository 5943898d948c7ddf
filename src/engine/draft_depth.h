// How many tokens to draft for the next pass: a fixed number, or what pays best on this device with
// this text (decode.mtp_depth=auto).
//
// Automatic: first a few passes of every width, to learn what they cost; they give tokens as any
// other pass does. Then the depth k with the most expected tokens for its cost, (1 + a_1 + a_1 a_2
// + ... ) / cost(k) (Leviathan et al. 2023, arXiv:2211.17192, section 3.3, with an acceptance of
// its own for each depth); cost(k) is the median of the latest passes of that width, on a straight
// line between widths that were not seen. Where no depth beats plain decode, nothing is drafted;
// after 32 passes a few are tried again, and after twice as many each time that they lose.
//
// Which depth is chosen depends on the clock; which tokens come out does not.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/speculation_options.h"

namespace reckon::engine {

class DraftDepth {
 public:
  DraftDepth(int64_t most, bool automatic);

  // For the next pass; 0: draft nothing.
  [[nodiscard]] int64_t next() const;
  // What came of it: `drafted` tokens, of which the first `accepted` were right, in `pass_ns` from
  // the start of drafting to the last picked token.
  void saw(int64_t drafted, int64_t accepted, int64_t pass_ns);

 private:
  struct Acceptance {
    double reached = 2, accepted = 1;  // before anything is known: one half
  };
  [[nodiscard]] bool learning() const { return learned_ < lessons_.size(); }
  void learn(int64_t drafted, int64_t accepted, int64_t pass_ns);
  void choose();
  // Expected tokens for the time of a plain pass, with `drafts` drafts; 1 for none.
  [[nodiscard]] double gain(int64_t drafts) const;
  [[nodiscard]] double cost_ns(int64_t drafts) const;
  [[nodiscard]] double median_ns(int64_t drafts) const;  // 0 where the width was not seen

  int64_t most_;
  bool automatic_;
  std::vector<int64_t> lessons_;  // depths to be tried first
  size_t learned_ = 0;
  int64_t chosen_ = 0;
  int64_t resting_ = 0;  // passes to go without drafts
  int64_t rest_;         // how many they will be next time
  int64_t trying_ = 0;   // passes to go with drafts that did not pay before
  int64_t best_ = 1;     // the best depth above 0, whether it pays or not
  std::array<Acceptance, kDeepestDraft> acceptance_;
  std::array<std::deque<int64_t>, kDeepestDraft + 1> pass_ns_;  // the latest, by drafts
};

}  // namespace reckon::engine
