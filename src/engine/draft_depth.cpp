#include "engine/draft_depth.h"

#include <algorithm>

namespace reckon::engine {
namespace {

constexpr int kRounds = 3;          // of lessons
constexpr int64_t kFirstRest = 32;  // passes
constexpr int64_t kLongestRest = 1024;
constexpr int64_t kTries = 4;     // passes
constexpr size_t kKept = 9;       // times of a width
constexpr double kMemory = 0.98;  // the weight of what was accepted a pass earlier

}  // namespace

DraftDepth::DraftDepth(int64_t most, bool automatic)
    : most_(most), automatic_(automatic), rest_(kFirstRest) {
  if (!automatic) return;
  for (int round = 0; round < kRounds; ++round) {
    for (const int64_t depth : {0, 1, 2, 4, 8}) {
      if (depth <= most_) lessons_.push_back(depth);
    }
  }
}

int64_t DraftDepth::next() const {
  if (!automatic_) return most_;
  if (learning()) return lessons_[learned_];
  if (resting_ > 0) return 0;
  return trying_ > 0 ? best_ : chosen_;
}

double DraftDepth::median_ns(int64_t drafts) const {
  const auto& kept = pass_ns_[static_cast<size_t>(drafts)];
  if (kept.empty()) return 0;
  std::vector<int64_t> times(kept.begin(), kept.end());
  std::ranges::sort(times);
  return static_cast<double>(times[times.size() / 2]);
}

double DraftDepth::cost_ns(int64_t drafts) const {
  if (const double seen = median_ns(drafts); seen > 0) return seen;
  int64_t below = drafts;
  int64_t above = drafts;
  while (below > 0 && median_ns(below) == 0) --below;
  while (above < most_ && median_ns(above) == 0) ++above;
  const double low = median_ns(below);
  const double high = median_ns(above);
  if (high == 0) return low;
  return low +
         (high - low) * static_cast<double>(drafts - below) / static_cast<double>(above - below);
}

double DraftDepth::gain(int64_t drafts) const {
  const double cost = cost_ns(drafts);
  if (cost == 0) return 1;
  double expected = 1;
  double reached = 1;
  for (int64_t i = 0; i < drafts; ++i) {
    const Acceptance& a = acceptance_[static_cast<size_t>(i)];
    reached *= a.accepted / a.reached;
    expected += reached;
  }
  return expected * cost_ns(0) / cost;
}

void DraftDepth::learn(int64_t drafted, int64_t accepted, int64_t pass_ns) {
  auto& kept = pass_ns_[static_cast<size_t>(drafted)];
  kept.push_back(pass_ns);
  if (kept.size() > kKept) kept.pop_front();
  for (int64_t i = 0; i < std::min(drafted, accepted + 1); ++i) {
    Acceptance& a = acceptance_[static_cast<size_t>(i)];
    a.reached = a.reached * kMemory + 1;
    a.accepted = a.accepted * kMemory + (i < accepted ? 1 : 0);
  }
}

void DraftDepth::choose() {
  best_ = 1;
  for (int64_t drafts = 2; drafts <= most_; ++drafts) {
    if (gain(drafts) > gain(best_)) best_ = drafts;
  }
  chosen_ = gain(best_) > 1 ? best_ : 0;
}

void DraftDepth::saw(int64_t drafted, int64_t accepted, int64_t pass_ns) {
  if (!automatic_) return;
  learn(drafted, accepted, pass_ns);
  if (learning()) {
    if (drafted > 0 || lessons_[learned_] == 0) ++learned_;
    if (learning()) return;
  } else if (resting_ > 0) {
    if (--resting_ == 0) trying_ = kTries;
    return;
  } else if (trying_ > 0) {
    if (drafted > 0) --trying_;
    if (trying_ > 0) return;
  }
  choose();
  if (chosen_ > 0) {
    rest_ = kFirstRest;
    return;
  }
  resting_ = rest_;
  rest_ = std::min(rest_ * 2, kLongestRest);
}

}  // namespace reckon::engine
