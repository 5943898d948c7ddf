// What is done to a row of logits on the host before a token is drawn from it: the penalty of
// tokens that were there a moment ago, and the filters that leave only likely ones.
//
// Deterministic on every machine whose exp() rounds alike: shares are float64, sums run in index
// order unless a rank is named, and candidates rank by logit, equal ones by the lower index first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reckon::engine {

struct FilterOptions {
  int64_t top_k = 0;  // 0: all
  double top_p = 1;   // in (0, 1]; 1: all
  double min_p = 0;   // in [0, 1]; 0: all

  [[nodiscard]] bool keeps_all() const { return top_k == 0 && top_p == 1 && min_p == 0; }
};

// Divides the logits above 0 of every token in `recent` by `penalty` and multiplies the others, in
// float32, once however often a token is there (Keskar et al. 2019, arXiv:1909.05858, section 4.1).
// `penalty` is above 0; tokens are inside the row.
void penalise(std::span<float> logits, std::span<const int32_t> recent, float penalty);

struct Candidate {
  int32_t token = 0;
  float logit = 0;
};

// The candidates that are left, at least one, in index order. Of a row that is not empty, one
// filter after the other, each on what the one before left:
//  1. top_k: the k that rank highest.
//  2. top_p: the shortest run from the highest rank down whose shares of exp(logit), added in that
//     order, reach top_p of their total (Holtzman et al. 2020, arXiv:1904.09751).
//  3. min_p: those whose share is at least min_p of the highest one's (Nguyen et al. 2024,
//     arXiv:2407.01082).
[[nodiscard]] std::vector<Candidate> likely_candidates(std::span<const float> logits,
                                                       const FilterOptions& options);

}  // namespace reckon::engine
