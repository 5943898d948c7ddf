#include "formats/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "formats/byte_alphabet.h"

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int32_t> merged(const MergeTable& table, const std::vector<int32_t>& word) {
  std::vector<int32_t> tokens;
  table.merge(word, tokens);
  return tokens;
}

TEST(Bpe, MergesTheLowestRankFirstAndTheLeftmostOfEqualOnes) {
  MergeTable table;
  table.add(1, 2, 5, 12);
  table.add(2, 3, 1, 23);
  table.add(7, 7, 2, 77);
  EXPECT_THAT(merged(table, {1, 2, 3}), ElementsAre(1, 23));
  EXPECT_THAT(merged(table, {1, 2, 4}), ElementsAre(12, 4));
  EXPECT_THAT(merged(table, {7, 7, 7}), ElementsAre(77, 7));
  EXPECT_THAT(merged(table, {7, 7, 7, 7}), ElementsAre(77, 77));
  EXPECT_THAT(merged(table, {9}), ElementsAre(9));
  EXPECT_THAT(merged(table, {}), IsEmpty());
}

// The slow and obvious way: scan for the best pair, merge it, repeat.
TEST(Bpe, EqualsRepeatedScanning) {
  std::mt19937 random(1);
  constexpr int32_t kSymbols = 6;
  constexpr int32_t kTokens = 60;
  std::vector<std::vector<std::pair<int32_t, int32_t>>> rule(
      kTokens, std::vector<std::pair<int32_t, int32_t>>(kTokens, {-1, -1}));  // rank, merged
  MergeTable table;
  for (int32_t token = kSymbols; token < kTokens; ++token) {
    const auto left = static_cast<int32_t>(random() % static_cast<unsigned>(token));
    const auto right = static_cast<int32_t>(random() % static_cast<unsigned>(token));
    table.add(left, right, token, token);
    rule[static_cast<size_t>(left)][static_cast<size_t>(right)] = {token, token};
  }
  for (int round = 0; round < 3000; ++round) {
    std::vector<int32_t> word(random() % 40);
    for (int32_t& symbol : word) symbol = static_cast<int32_t>(random() % kSymbols);
    const auto got = merged(table, word);
    while (true) {
      size_t best = word.size();
      int32_t best_rank = kTokens;
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        const auto& found = rule[static_cast<size_t>(word[i])][static_cast<size_t>(word[i + 1])];
        if (found.first >= 0 && found.first < best_rank) {
          best = i;
          best_rank = found.first;
        }
      }
      if (best == word.size()) break;
      word[best] = best_rank;
      word.erase(word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    ASSERT_EQ(got, word);
  }
}

TEST(ByteAlphabet, IsABijection) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = byte_to_alphabet(static_cast<uint8_t>(byte));
    EXPECT_EQ(bytes_from_alphabet(text), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(byte_to_alphabet(' '), "\u0120");
  EXPECT_EQ(byte_to_alphabet('\n'), "\u010a");
  EXPECT_EQ(byte_to_alphabet('a'), "a");
  EXPECT_EQ(bytes_from_alphabet("\u0120the"), " the");
  EXPECT_FALSE(bytes_from_alphabet(" ").has_value());
  EXPECT_FALSE(bytes_from_alphabet("\u4e2d").has_value());
  EXPECT_FALSE(bytes_from_alphabet("\xff").has_value());
}

}  // namespace
}  // namespace reckon
