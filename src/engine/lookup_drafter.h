// Prompt look-up: drafts what followed the last time that the text went like this (Saxena 2023,
// github.com/apoorvumang/prompt-lookup-decoding). Needs no second model; good where answers repeat
// their prompt or themselves.
//
// A draft is the token behind the most recent of the longest earlier matches of the text's last
// tokens (the drafts before it count as text), 3 of them at most and 1 at least. Its probability is
// the share of the matches of that length that go on with it, of one more than there are (method A
// of Witten & Bell 1991, "The zero-frequency problem"): one match alone says 1/2. The latest 1024
// places of the last token are looked at, so that a monotonous text stays cheap.
#pragma once

#include <unordered_map>

#include "engine/drafter.h"

namespace reckon::engine {

class LookupDrafter final : public Drafter {
 public:
  [[nodiscard]] std::string name() const override { return "lookup"; }
  [[nodiscard]] Status commit(std::span<const int32_t> tokens) override;
  [[nodiscard]] Result<std::vector<Draft>> propose(int64_t depth,
                                                   const ConfidenceGate& gate) override;

 private:
  void push(int32_t token);
  void pop();
  [[nodiscard]] std::optional<Draft> next() const;
  // How many tokens up to `place` are those up to the end, kLongest at most.
  [[nodiscard]] int64_t match_length(int64_t place) const;

  std::vector<int32_t> tokens_;
  std::vector<int64_t> earlier_;                 // the place before of the same token; -1: none
  std::unordered_map<int32_t, int64_t> latest_;  // of each token; -1: none
};

}  // namespace reckon::engine
