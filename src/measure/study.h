// How often the verdict rule is wrong, counted on simulated machines (simulation.h). The noise is
// learnt from each queue's own simulated A/A rounds, as the product does; the rule never sees what
// the simulator knows. Used by study_test.cpp and bench/measure_study.cpp, not by the product.
// Pure: the seed decides everything.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "measure/simulation.h"

namespace reckon::measure {

struct StudyDesign {
  int noise_rounds = 20;  // K
  int rounds = 2;         // R
  int pairs = 6;
};

struct ErrorRates {
  int64_t queues = 0;
  int64_t false_calls = 0;        // identical arms called WON or LOST
  int64_t neutral_at_claim = 0;   // an effect of exactly the claim called NEUTRAL
  int64_t found_at_smallest = 0;  // an effect of the stated smallest size called WON
  double mean_smallest = 0;       // stated smallest effects, log units

  [[nodiscard]] double share(int64_t count) const {
    return static_cast<double>(count) / static_cast<double>(queues);
  }
};

// Each queue: K A/A rounds, a comparison of identical arms, and one of arms that differ by the
// smallest effect that the design states, which is also its claim (the smallest that is not
// refused, and the one at which NEUTRAL is called wrongly most often). Errors: a design without
// rounds.
[[nodiscard]] Result<ErrorRates> study_rule(const NoiseModel& model, const StudyDesign& design,
                                            int64_t queues, uint64_t seed);

// Identical arms, measured as many people measure: 12 values of each arm. How often a difference is
// reported.
struct PracticeRates {
  int64_t comparisons = 0;
  int64_t welch = 0;   // all of A in one process, then all of B in another; Welch's test at 5%
  int64_t best = 0;    // the same values; the better maximum wins where it is ahead by 1%
  int64_t retry = 0;   // Welch as above, again until it is significant, at most five times
  int64_t pooled = 0;  // two processes of 6 ABBA pairs each, Wilcoxon's test at 5% over all 12

  [[nodiscard]] double share(int64_t count) const {
    return static_cast<double>(count) / static_cast<double>(comparisons);
  }
};
[[nodiscard]] Result<PracticeRates> study_practices(const NoiseModel& model, int64_t comparisons,
                                                    uint64_t seed);

// Identical arms compared in 2 rounds, and, as long as that is INCONCLUSIVE, in 2 more that join
// the earlier ones, up to `looks` times: how often they are WON or LOST at some point.
[[nodiscard]] Result<double> study_joining(const NoiseModel& model, int looks, int64_t queues,
                                           uint64_t seed);

// Sequential stopping (sequential.h) with K = 20 and a claim of so many learnt noises s_m.
struct SequentialRates {
  int64_t queues = 0;
  int64_t false_calls = 0;    // identical arms: kBetter or kWorse
  int64_t missed_claims = 0;  // an effect of the claim: kNoGain or kWorse
  int64_t found = 0;          // an effect of the claim: kBetter
  int64_t undecided = 0;      // of both, after kMostSequentialRounds
  int64_t rounds_same = 0;    // taken by identical arms, all queues together
  int64_t rounds_better = 0;  // by an effect of the claim

  [[nodiscard]] double share(int64_t count) const {
    return static_cast<double>(count) / static_cast<double>(queues);
  }
};
inline constexpr int kMostSequentialRounds = 200;
[[nodiscard]] Result<SequentialRates> study_sequential(const NoiseModel& model,
                                                       double claim_in_noises, int64_t queues,
                                                       uint64_t seed);

// Every kind of noise that the rule is promised to stand: normal, heavy-tailed, spikes and
// autocorrelation; shifts of rounds of 0, 0.5, 1 and 2 pair noises; without and with a slot bias of
// 3% and drift; and heavy-tailed shifts.
[[nodiscard]] std::vector<NoiseModel> promised_noise();

}  // namespace reckon::measure
