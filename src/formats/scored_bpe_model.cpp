#include "formats/scored_bpe_model.h"

#include <queue>

#include "base/utf8.h"

namespace reckon {
namespace {

constexpr size_t kNone = static_cast<size_t>(-1);

// A part of the piece, in a list that merges shorten; empty once it was merged into the one before.
struct Symbol {
  std::string_view text;
  size_t previous;
  size_t next;
};

// A possible merge of the symbol at `left` with the one after it.
struct Candidate {
  float score;
  size_t left;
  size_t size;  // of both, in bytes

  bool operator<(const Candidate& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

}  // namespace

ScoredBpeModel::ScoredBpeModel(const std::vector<Token>& tokens,
                               const std::array<int32_t, 256>& byte_tokens,
                               std::optional<int32_t> unk)
    : byte_tokens_(byte_tokens), unk_(unk) {
  auto pool = std::make_unique<std::string>();
  for (const Token& token : tokens) *pool += token.text;
  pool_ = std::move(pool);
  entries_.reserve(tokens.size());
  size_t at = 0;
  for (const Token& token : tokens) {
    const std::string_view text = std::string_view(*pool_).substr(at, token.text.size());
    entries_.emplace(text, Entry{token.id, token.score});
    at += text.size();
  }
}

const ScoredBpeModel::Entry* ScoredBpeModel::find(std::string_view text) const {
  const auto found = entries_.find(text);
  return found == entries_.end() ? nullptr : &found->second;
}

void ScoredBpeModel::tokenize(std::string_view piece, std::vector<int32_t>& ids) const {
  std::vector<Symbol> symbols;
  while (!piece.empty()) {
    const size_t length = decode_utf8(piece).length;
    const size_t index = symbols.size();
    symbols.push_back({piece.substr(0, length), index == 0 ? kNone : index - 1, index + 1});
    piece.remove_prefix(length);
  }
  symbols.back().next = kNone;

  std::priority_queue<Candidate> candidates;
  const auto propose = [&](size_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    const std::string_view first = symbols[left].text;
    const size_t size = first.size() + symbols[symbols[left].next].text.size();
    const Entry* entry = find({first.data(), size});  // neighbours lie side by side
    if (entry != nullptr) candidates.push({entry->score, left, size});
  };
  for (size_t i = 0; i < symbols.size(); ++i) propose(i);

  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Symbol& left = symbols[best.left];
    if (left.text.empty() || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    if (left.text.size() + right.text.size() != best.size) continue;  // one has changed since
    left.text = {left.text.data(), best.size};
    right.text = {};
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.left;
    propose(left.previous);
    propose(best.left);
  }

  for (size_t i = 0; i != kNone; i = symbols[i].next) {
    if (const Entry* entry = find(symbols[i].text)) {
      ids.push_back(entry->id);
      continue;
    }
    for (const char c : symbols[i].text) byte(static_cast<uint8_t>(c), ids);
  }
}

void ScoredBpeModel::byte(uint8_t byte, std::vector<int32_t>& ids) const {
  const int32_t id = byte_tokens_[byte];
  if (id != kNoToken) {
    ids.push_back(id);
  } else if (unk_) {
    ids.push_back(*unk_);
  }
}

}  // namespace reckon
