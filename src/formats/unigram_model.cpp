#include "formats/unigram_model.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace reckon {
namespace {

constexpr double kUnknownPenalty = 10;
constexpr size_t kNowhere = static_cast<size_t>(-1);
constexpr int32_t kUnknown = -1;

// The best way to the end of a part of the text.
struct Node {
  double score = 0;
  size_t from = kNowhere;    // where its last token begins
  int32_t token = kUnknown;  // which one, an index of tokens_
};

}  // namespace

UnigramModel::UnigramModel(std::vector<Token> tokens, const std::array<int32_t, 256>& byte_tokens,
                           std::optional<int32_t> unk, double lowest_score, Sums sums)
    : tokens_(std::move(tokens)),
      byte_tokens_(byte_tokens),
      unk_(unk),
      unknown_score_(lowest_score - kUnknownPenalty),
      sums_(sums) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    table_.add(std::exchange(tokens_[i].text, {}), static_cast<int32_t>(i));
  }
  table_.finish();
}

void UnigramModel::tokenize(std::string_view piece, std::vector<int32_t>& ids) const {
  std::vector<Node> nodes(piece.size() + 1);
  const auto reach = [&](size_t end, double score, size_t from, int32_t token) {
    Node& node = nodes[end];
    if (sums_ == Sums::kSingle) score = static_cast<float>(score);
    if (node.from == kNowhere || score > node.score) node = {score, from, token};
  };
  for (size_t begin = 0; begin < piece.size();) {
    const double score = nodes[begin].score;
    const size_t character = decode_utf8(piece.substr(begin)).length;
    bool known = false;
    table_.each(piece.substr(begin), [&](size_t length, int32_t token) {
      reach(begin + length, tokens_[static_cast<size_t>(token)].score + score, begin, token);
      known |= length == character;
    });
    if (!known) reach(begin + character, unknown_score_ + score, begin, kUnknown);
    begin += character;
  }

  std::vector<std::pair<size_t, size_t>> path;  // [begin, end), the last token first
  for (size_t end = piece.size(); end > 0; end = nodes[end].from) {
    const Node& node = nodes[end];
    const bool fuses =
        node.token == kUnknown && !path.empty() && nodes[path.back().second].token == kUnknown;
    if (fuses) {
      path.back().first = node.from;
    } else {
      path.emplace_back(node.from, end);
    }
  }
  for (auto part = path.rbegin(); part != path.rend(); ++part) {
    const Node& node = nodes[part->second];
    if (node.token == kUnknown) {
      add_unknown(piece.substr(part->first, part->second - part->first), ids);
    } else {
      ids.push_back(tokens_[static_cast<size_t>(node.token)].id);
    }
  }
}

void UnigramModel::add_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  // Fused unknown characters can be a token after all, which the score of their parts had beaten.
  const PrefixTable::Match match = table_.longest(text);
  if (match.length == text.size()) {
    ids.push_back(tokens_[static_cast<size_t>(match.value)].id);
    return;
  }
  const auto has_token = [&](char byte) {
    return byte_tokens_[static_cast<uint8_t>(byte)] != kNoToken;
  };
  if (std::all_of(text.begin(), text.end(), has_token)) {
    for (const char byte : text) ids.push_back(byte_tokens_[static_cast<uint8_t>(byte)]);
  } else if (unk_) {
    ids.push_back(*unk_);
  }
}

void UnigramModel::byte(uint8_t byte, std::vector<int32_t>& ids) const {
  if (byte_tokens_[byte] != kNoToken) {
    ids.push_back(byte_tokens_[byte]);
  } else if (unk_) {
    ids.push_back(*unk_);
  }
}

}  // namespace reckon
