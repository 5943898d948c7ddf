#include "engine/speculation_stats.h"

#include <algorithm>

namespace reckon::engine {
namespace {

double ratio(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

// 1 + a + ... + a^depth.
double expected_tokens(int64_t depth, double a) {
  double sum = 1;
  for (int64_t i = 0; i < depth; ++i) sum = 1 + a * sum;
  return sum;
}

}  // namespace

std::optional<double> SpeculationStats::Depth::acceptance() const {
  return reached == 0 ? std::nullopt : std::optional(ratio(accepted, reached));
}

void SpeculationStats::add(int64_t drafted, int64_t accepted, int64_t tokens, int64_t pass_ns,
                           int64_t draft_ns) {
  ++passes_;
  tokens_ += tokens;
  total_ns_ += pass_ns + draft_ns;
  if (drafted > 0) {
    ++drafting_passes_;
    draft_ns_ += draft_ns;
  }
  if (drafted > static_cast<int64_t>(depths_.size())) depths_.resize(static_cast<size_t>(drafted));
  for (int64_t i = 0; i < drafted; ++i) {
    Depth& depth = depths_[static_cast<size_t>(i)];
    ++depth.drafted;
    if (i < tokens && i <= accepted) ++depth.reached;
    if (i < accepted) ++depth.accepted;
  }
  add_time(drafted + 1, pass_ns);
}

void SpeculationStats::add_time(int64_t rows, int64_t pass_ns) {
  if (rows > widest()) pass_ns_.resize(static_cast<size_t>(rows));
  pass_ns_[static_cast<size_t>(rows - 1)].push_back(pass_ns);
}

double SpeculationStats::tokens_per_pass() const {
  return ratio(tokens_, passes_);
}

double SpeculationStats::mean_pass_ns() const {
  return ratio(total_ns_, passes_);
}

double SpeculationStats::mean_draft_ns() const {
  return ratio(draft_ns_, drafting_passes_);
}

int64_t SpeculationStats::passes_of(int64_t rows) const {
  if (rows < 1 || rows > widest()) return 0;
  return static_cast<int64_t>(pass_ns_[static_cast<size_t>(rows - 1)].size());
}

std::optional<int64_t> SpeculationStats::median_pass_ns(int64_t rows) const {
  if (passes_of(rows) == 0) return std::nullopt;
  std::vector<int64_t> times = pass_ns_[static_cast<size_t>(rows - 1)];
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::optional<double> SpeculationStats::cost(int64_t rows) const {
  const std::optional<int64_t> one = median_pass_ns(1);
  const std::optional<int64_t> several = median_pass_ns(rows);
  if (!one || !several || *one <= 0) return std::nullopt;
  const double drafting = rows > 1 ? mean_draft_ns() : 0;
  return (static_cast<double>(*several) + drafting) / static_cast<double>(*one);
}

void SpeculationStats::merge(const SpeculationStats& other) {
  passes_ += other.passes_;
  drafting_passes_ += other.drafting_passes_;
  tokens_ += other.tokens_;
  total_ns_ += other.total_ns_;
  draft_ns_ += other.draft_ns_;
  depths_.resize(std::max(depths_.size(), other.depths_.size()));
  for (size_t i = 0; i < other.depths_.size(); ++i) {
    depths_[i].drafted += other.depths_[i].drafted;
    depths_[i].reached += other.depths_[i].reached;
    depths_[i].accepted += other.depths_[i].accepted;
  }
  pass_ns_.resize(std::max(pass_ns_.size(), other.pass_ns_.size()));
  for (size_t i = 0; i < other.pass_ns_.size(); ++i) {
    pass_ns_[i].insert(pass_ns_[i].end(), other.pass_ns_[i].begin(), other.pass_ns_[i].end());
  }
}

std::optional<double> break_even_acceptance(int64_t depth, double cost) {
  if (cost <= 1) return 0;
  if (cost > expected_tokens(depth, 1)) return std::nullopt;
  double low = 0;
  double high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (expected_tokens(depth, middle) < cost ? low : high) = middle;
  }
  return high;
}

}  // namespace reckon::engine
