#include "engine/replay_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace reckon::engine {

ReplayDrafter::ReplayDrafter(double probability, Recording recording, int64_t vocabulary,
                             uint64_t seed)
    : probability_(probability) {
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < recording.tokens.size(); ++i) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    int64_t token = recording.tokens[i];
    if (uniform >= probability && vocabulary > 1) {
      const uint64_t others = static_cast<uint64_t>(vocabulary) - 1;
      token = (token + 1 + static_cast<int64_t>(random() % others)) % vocabulary;
    }
    drafts_.push_back({.token = static_cast<int32_t>(token),
                       .probability = probability,
                       .margin = recording.margins[i]});
  }
}

std::string ReplayDrafter::name() const {
  return fmt::format("replay:{}", probability_);
}

Status ReplayDrafter::commit(std::span<const int32_t> tokens) {
  if (begun_) next_ += tokens.size();
  begun_ = true;
  return {};
}

Result<std::vector<Draft>> ReplayDrafter::propose(int64_t depth, const ConfidenceGate& gate) {
  std::vector<Draft> proposed;
  for (size_t i = next_; i < drafts_.size(); ++i) {
    if (static_cast<int64_t>(proposed.size()) == depth || !gate.passes(drafts_[i])) break;
    proposed.push_back(drafts_[i]);
  }
  return proposed;
}

bool is_replay(std::string_view drafter) {
  return drafter.starts_with("replay:");
}

}  // namespace reckon::engine
