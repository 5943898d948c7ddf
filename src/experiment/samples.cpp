#include "experiment/samples.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace reckon::experiment {
namespace {

constexpr size_t kPromptShown = 200;

void add_rows(std::vector<DispatchRow>& seen, const std::vector<DispatchRow>& rows) {
  const std::vector<DispatchRow> fresh = new_rows(seen, rows);
  seen.insert(seen.end(), fresh.begin(), fresh.end());
  std::sort(seen.begin(), seen.end());
}

}  // namespace

std::vector<int64_t> CollectedRound::missing(int64_t pairs_a_round) const {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < pairs_a_round; ++i) {
    const bool there = std::any_of(pairs.begin(), pairs.end(),
                                   [i](const JournalPair& pair) { return pair.index == i; });
    if (!there) indices.push_back(i);
  }
  return indices;
}

void Samples::add(const JournalPair& pair) {
  auto round = std::find_if(rounds.begin(), rounds.end(), [&](const CollectedRound& known) {
    return known.identity.id == pair.round.id;
  });
  if (round == rounds.end()) {
    const auto next = std::find_if(rounds.begin(), rounds.end(), [&](const CollectedRound& known) {
      return known.identity.index > pair.round.index;
    });
    round = rounds.insert(next, CollectedRound{});
    round->identity = pair.round;
  }
  if (pair.warmup) {
    round->warmups.push_back(pair);
  } else {
    std::vector<JournalPair>& pairs = round->pairs;
    const auto before = std::find_if(pairs.rbegin(), pairs.rend(), [&](const JournalPair& other) {
      return other.index < pair.index;
    });
    pairs.insert(before.base(), pair);
  }
  round->processes = std::max(round->processes, pair.process + 1);
  if (!pair.environment.empty()) round->environment = pair.environment;
  add_rows(base_rows, pair.base_rows);
  add_rows(arm_rows, pair.arm_rows);
  for (const auto& [kernel, use] : pair.base_kernel_use) base_kernel_use[kernel] = use;
  for (const auto& [kernel, use] : pair.arm_kernel_use) arm_kernel_use[kernel] = use;
  if (tokens.empty()) {
    tokens = pair.tokens;
    arm_tokens = pair.arm_tokens;
    margin = pair.margin;
  }
  base_peak_bytes = std::max(base_peak_bytes, pair.base_peak_bytes);
  arm_peak_bytes = std::max(arm_peak_bytes, pair.arm_peak_bytes);
}

double Samples::seconds_a_pair() const {
  double seconds = 0;
  size_t count = 0;
  for (const CollectedRound& round : rounds) {
    for (const JournalPair& pair : round.pairs) seconds += pair.seconds;
    count += round.pairs.size();
  }
  return count > 0 ? seconds / static_cast<double>(count) : 0;
}

Samples collect(std::span<const JournalPair> pairs) {
  Samples samples;
  for (const JournalPair& pair : pairs) samples.add(pair);
  return samples;
}

std::vector<DispatchRow> new_rows(std::span<const DispatchRow> seen,
                                  std::span<const DispatchRow> observed) {
  std::vector<DispatchRow> fresh;
  for (const DispatchRow& row : observed) {
    if (std::find(seen.begin(), seen.end(), row) == seen.end()) fresh.push_back(row);
  }
  std::sort(fresh.begin(), fresh.end());
  fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
  return fresh;
}

KernelUse new_kernel_use(const KernelUse& seen, const KernelUse& used) {
  KernelUse fresh;
  for (const auto& row : used) {
    const auto known = seen.find(row.first);
    if (known == seen.end() || known->second != row.second) fresh.insert(row);
  }
  return fresh;
}

ledger::TokenCheck compare_tokens(std::span<const int32_t> base, std::span<const int32_t> arm,
                                  std::span<const float> margins, const std::string& prompt) {
  ledger::TokenCheck check;
  check.compared = static_cast<int64_t>(std::max(base.size(), arm.size()));
  const auto [base_stop, arm_stop] =
      std::mismatch(base.begin(), base.end(), arm.begin(), arm.end());
  check.identical = base_stop == base.end() && arm_stop == arm.end();
  if (check.identical) return check;
  ledger::Divergence divergence;
  const auto position = static_cast<size_t>(std::distance(base.begin(), base_stop));
  divergence.prompt = shorten(prompt, kPromptShown);
  divergence.position = static_cast<int64_t>(position);
  divergence.base_token = base_stop == base.end() ? -1 : *base_stop;
  divergence.arm_token = arm_stop == arm.end() ? -1 : *arm_stop;
  if (position < margins.size() && std::isfinite(margins[position])) {
    divergence.margin = margins[position];
  }
  check.first_divergence = divergence;
  return check;
}

ledger::PairSample to_sample(const JournalPair& pair) {
  ledger::PairSample sample{pair.base, pair.arm, pair.arm_first, pair.warmup};
  sample.extra["seconds"] = pair.seconds;
  sample.extra["process"] = pair.process;
  if (!pair.disturbed.empty()) sample.extra["disturbed"] = pair.disturbed;
  if (pair.paused_seconds > 0) sample.extra["paused_seconds"] = pair.paused_seconds;
  if (pair.base_control && pair.arm_control) {
    sample.extra["control"] = {{"base", *pair.base_control}, {"arm", *pair.arm_control}};
  }
  return sample;
}

std::vector<measure::Pair> to_pairs(std::span<const ledger::PairSample> samples) {
  std::vector<measure::Pair> pairs;
  for (const ledger::PairSample& sample : samples) {
    pairs.push_back({sample.base, sample.arm,
                     sample.arm_first ? measure::Order::kArmFirst : measure::Order::kBaseFirst,
                     sample.warmup});
  }
  return pairs;
}

}  // namespace reckon::experiment
