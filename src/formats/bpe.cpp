#include "formats/bpe.h"

#include <queue>
#include <tuple>

namespace reckon {
namespace {

constexpr int64_t kNone = -1;

// A symbol of the word, in a list that merges shorten.
struct Symbol {
  int32_t token;  // kDead once it was merged into its left neighbour
  int64_t previous;
  int64_t next;
};
constexpr int32_t kDead = -1;

// A possible merge of the symbol at `position` with its right neighbour.
struct Candidate {
  int32_t rank;
  int32_t merged;
  int64_t position;

  bool operator>(const Candidate& other) const {
    return std::tie(rank, position) > std::tie(other.rank, other.position);
  }
};

uint64_t key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

void MergeTable::add(int32_t left, int32_t right, int32_t rank, int32_t merged) {
  merges_.insert_or_assign(key(left, right), Rule{rank, merged});
}

const MergeTable::Rule* MergeTable::find(int32_t left, int32_t right) const {
  const auto found = merges_.find(key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void MergeTable::merge(std::span<const int32_t> symbols, std::vector<int32_t>& tokens) const {
  const auto count = static_cast<int64_t>(symbols.size());
  if (count == 0) return;
  std::vector<Symbol> word;
  word.reserve(symbols.size());
  for (int64_t i = 0; i < count; ++i) {
    word.push_back({symbols[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : kNone});
  }

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto at = [&](int64_t i) -> Symbol& { return word[static_cast<size_t>(i)]; };
  const auto propose = [&](int64_t left) {
    if (left == kNone || at(left).next == kNone) return;
    if (const Rule* rule = find(at(left).token, at(at(left).next).token)) {
      candidates.push({rule->rank, rule->merged, left});
    }
  };
  for (int64_t i = 0; i < count; ++i) propose(i);

  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = at(best.position);
    if (left.token == kDead || left.next == kNone) continue;
    Symbol& right = at(left.next);
    // One of the two may have changed since; what counts is that they still make the same token.
    const Rule* rule = find(left.token, right.token);
    if (rule == nullptr || rule->merged != best.merged) continue;
    left.token = best.merged;
    left.next = right.next;
    right.token = kDead;
    if (left.next != kNone) at(left.next).previous = best.position;
    propose(left.previous);
    propose(best.position);
  }
  for (int64_t i = 0; i != kNone; i = at(i).next) tokens.push_back(at(i).token);
}

}  // namespace reckon
