#include "engine/lookup_drafter.h"

namespace reckon::engine {
namespace {

constexpr int64_t kLongest = 3;
constexpr int kMostPlaces = 1024;

}  // namespace

void LookupDrafter::push(int32_t token) {
  const auto place = static_cast<int64_t>(tokens_.size());
  const auto [latest, added] = latest_.try_emplace(token, -1);
  earlier_.push_back(latest->second);
  latest->second = place;
  tokens_.push_back(token);
}

void LookupDrafter::pop() {
  latest_[tokens_.back()] = earlier_.back();
  earlier_.pop_back();
  tokens_.pop_back();
}

int64_t LookupDrafter::match_length(int64_t place) const {
  const auto end = static_cast<int64_t>(tokens_.size()) - 1;
  int64_t length = 0;
  while (length < kLongest && length <= place &&
         tokens_[static_cast<size_t>(place - length)] ==
             tokens_[static_cast<size_t>(end - length)]) {
    ++length;
  }
  return length;
}

std::optional<Draft> LookupDrafter::next() const {
  int64_t longest = 0;
  int32_t follower = 0;
  double matches = 0;
  double agreeing = 0;
  int64_t place = earlier_.empty() ? -1 : earlier_.back();
  for (int seen = 0; place >= 0 && seen < kMostPlaces; ++seen) {
    const int64_t length = match_length(place);
    const int32_t following = tokens_[static_cast<size_t>(place) + 1];
    if (length > longest) {
      longest = length;
      follower = following;
      matches = agreeing = 0;
    }
    if (length == longest) {
      matches += 1;
      if (following == follower) agreeing += 1;
    }
    place = earlier_[static_cast<size_t>(place)];
  }
  if (longest == 0) return std::nullopt;
  return Draft{.token = follower, .probability = agreeing / (matches + 1), .margin = {}};
}

Status LookupDrafter::commit(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) push(token);
  return {};
}

Result<std::vector<Draft>> LookupDrafter::propose(int64_t depth, const ConfidenceGate& gate) {
  std::vector<Draft> drafts;
  while (static_cast<int64_t>(drafts.size()) < depth) {
    const std::optional<Draft> draft = next();
    if (!draft || !gate.passes(*draft)) break;
    drafts.push_back(*draft);
    push(draft->token);
  }
  for (size_t i = 0; i < drafts.size(); ++i) pop();
  return drafts;
}

}  // namespace reckon::engine
