// Byte-pair encoding: merges the symbols of one word by rank (Sennrich et al., "Neural Machine
// Translation of Rare Words with Subword Units", 2016), in O(n log n). Const after it was built
// and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tsl/robin_map.h>

namespace reckon {

class MergeTable {
 public:
  void reserve(size_t merges) { merges_.reserve(merges); }
  [[nodiscard]] size_t size() const { return merges_.size(); }
  // Adjacent `left` and `right` may become `merged`; lower ranks go first. Of two rules for one
  // pair the later counts.
  void add(int32_t left, int32_t right, int32_t rank, int32_t merged);

  // Appends the tokens that `symbols` (the single-byte tokens of a word) merge into: always the
  // adjacent pair of the lowest rank first, the leftmost of equal ones.
  void merge(std::span<const int32_t> symbols, std::vector<int32_t>& tokens) const;

 private:
  struct Rule {
    int32_t rank;
    int32_t merged;
  };
  [[nodiscard]] const Rule* find(int32_t left, int32_t right) const;

  struct Hash {  // the finaliser of SplitMix64 (Steele et al. 2014)
    size_t operator()(uint64_t key) const {
      key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
      key = (key ^ key >> 27) * 0x94d049bb133111eb;
      return key ^ key >> 31;
    }
  };
  tsl::robin_map<uint64_t, Rule, Hash> merges_;  // by left << 32 | right
};

}  // namespace reckon
