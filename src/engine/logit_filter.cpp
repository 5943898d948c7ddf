#include "engine/logit_filter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"

namespace reckon::engine {
namespace {

using Candidates = std::vector<Candidate>;

bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}
bool ranks_after(const Candidate& a, const Candidate& b) {
  return ranks_before(b, a);
}

float highest_logit(const Candidates& candidates) {
  return std::ranges::max(candidates, {}, &Candidate::logit).logit;
}

double share(const Candidate& candidate, float highest) {
  return std::exp(static_cast<double>(candidate.logit) - static_cast<double>(highest));
}

void keep_through(Candidates& candidates, const Candidate& last) {
  std::erase_if(candidates, [&](const Candidate& c) { return ranks_after(c, last); });
}

void keep_top_k(Candidates& candidates, int64_t k) {
  if (k >= static_cast<int64_t>(candidates.size())) return;
  Candidates ranked = candidates;
  const auto last = ranked.begin() + (k - 1);
  std::ranges::nth_element(ranked, last, ranks_before);
  keep_through(candidates, *last);
}

// A heap, so that a row whose mass lies in a few tokens is not sorted to its end.
void keep_top_p(Candidates& candidates, double p) {
  const float highest = highest_logit(candidates);
  double total = 0;
  for (const Candidate& candidate : candidates) total += share(candidate, highest);
  Candidates heap = candidates;
  std::ranges::make_heap(heap, ranks_after);
  double sum = 0;
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, ranks_after);
    const Candidate next = heap.back();
    heap.pop_back();
    sum += share(next, highest);
    if (sum >= p * total) return keep_through(candidates, next);
  }
}

void keep_min_p(Candidates& candidates, double p) {
  const float highest = highest_logit(candidates);
  std::erase_if(candidates, [&](const Candidate& c) { return share(c, highest) < p; });
}

}  // namespace

void penalise(std::span<float> logits, std::span<const int32_t> recent, float penalty) {
  for (const int32_t token : std::set<int32_t>(recent.begin(), recent.end())) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

std::vector<Candidate> likely_candidates(std::span<const float> logits,
                                         const FilterOptions& options) {
  RECKON_CHECK(!logits.empty());
  Candidates candidates(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates[i] = {static_cast<int32_t>(i), logits[i]};
  if (options.top_k > 0) keep_top_k(candidates, options.top_k);
  if (options.top_p < 1) keep_top_p(candidates, options.top_p);
  if (options.min_p > 0) keep_min_p(candidates, options.min_p);
  return candidates;
}

}  // namespace reckon::engine
