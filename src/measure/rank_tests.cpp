#include "measure/rank_tests.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/normal.h"
#include "measure/student_t.h"

namespace reckon::measure {
namespace {

// Differences other than zero, by size.
Result<std::vector<double>> by_size(std::span<const double> differences) {
  std::vector<double> kept;
  for (const double value : differences) {
    if (!std::isfinite(value)) return failed("a rank test was asked of a value that is not finite");
    if (value != 0) kept.push_back(value);
  }
  std::sort(kept.begin(), kept.end(),
            [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  return kept;
}

// Twice the mid-ranks of sizes in ascending order: whole numbers even where ranks are tied.
std::vector<int64_t> doubled_ranks(const std::vector<double>& sorted) {
  std::vector<int64_t> ranks(sorted.size());
  for (size_t first = 0; first < sorted.size();) {
    size_t end = first;
    while (end < sorted.size() && std::fabs(sorted[end]) == std::fabs(sorted[first])) ++end;
    // Ranks first + 1 … end have the mean (first + 1 + end) / 2.
    for (size_t i = first; i < end; ++i) ranks[i] = static_cast<int64_t>(first + 1 + end);
    first = end;
  }
  return ranks;
}

double two_sided(double lower, double upper) {
  return std::min(1.0, 2 * std::min(lower, upper));
}

// The share of the 2^n sign patterns whose positive (doubled) rank sum is at most, and at least,
// `sum`.
double exact_p(const std::vector<int64_t>& ranks, int64_t sum) {
  std::vector<double> share{1.0};  // by doubled rank sum
  for (const int64_t rank : ranks) {
    std::vector<double> next(share.size() + static_cast<size_t>(rank), 0.0);
    for (size_t i = 0; i < share.size(); ++i) {
      next[i] += share[i] / 2;
      next[i + static_cast<size_t>(rank)] += share[i] / 2;
    }
    share = std::move(next);
  }
  double lower = 0;
  double upper = 0;
  for (size_t i = 0; i < share.size(); ++i) {
    if (static_cast<int64_t>(i) <= sum) lower += share[i];
    if (static_cast<int64_t>(i) >= sum) upper += share[i];
  }
  return two_sided(lower, upper);
}

double approximate_p(const std::vector<int64_t>& ranks, double sum) {
  double center = 0;
  double squares = 0;
  for (const int64_t doubled : ranks) {
    const double rank = static_cast<double>(doubled) / 2;
    center += rank / 2;
    squares += rank * rank / 4;
  }
  const double distance = std::max(0.0, std::fabs(sum - center) - 0.5);
  return std::min(1.0, 2 * normal_upper_tail(distance / std::sqrt(squares)));
}

}  // namespace

Result<RankTest> wilcoxon_signed_rank(std::span<const double> differences) {
  TRY_ASSIGN(const std::vector<double> sorted, by_size(differences));
  RankTest test;
  test.used = static_cast<int64_t>(sorted.size());
  test.zeros = static_cast<int64_t>(differences.size() - sorted.size());
  if (sorted.empty()) return test;
  const std::vector<int64_t> ranks = doubled_ranks(sorted);
  int64_t sum = 0;
  for (size_t i = 0; i < sorted.size(); ++i) sum += sorted[i] > 0 ? ranks[i] : 0;
  test.statistic = static_cast<double>(sum) / 2;
  test.exact = sorted.size() <= kMostExactWilcoxon;
  test.p_value = test.exact ? exact_p(ranks, sum) : approximate_p(ranks, test.statistic);
  return test;
}

Result<RankTest> sign_test(std::span<const double> differences) {
  TRY_ASSIGN(const std::vector<double> sorted, by_size(differences));
  RankTest test;
  test.used = static_cast<int64_t>(sorted.size());
  test.zeros = static_cast<int64_t>(differences.size() - sorted.size());
  if (sorted.empty()) return test;
  const auto above = static_cast<double>(
      std::count_if(sorted.begin(), sorted.end(), [](double value) { return value > 0; }));
  const auto count = static_cast<double>(sorted.size());
  test.statistic = above;
  // P(X <= k) of a binomial(n, 1/2) is I_1/2(n - k, k + 1).
  const double fewer = std::min(above, count - above);
  if (2 * fewer >= count - 1) return test;
  test.p_value = std::min(1.0, 2 * regularized_incomplete_beta(count - fewer, fewer + 1, 0.5));
  return test;
}

}  // namespace reckon::measure
