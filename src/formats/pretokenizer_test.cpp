#include "formats/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "formats/unicode_classes.h"

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> words(PreTokenizer kind, std::string_view text) {
  std::vector<std::string> out;
  split_words(kind, text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

TEST(PreTokenizer, Gpt2) {
  const auto split = [](std::string_view text) { return words(PreTokenizer::kGpt2, text); };
  EXPECT_THAT(split(""), IsEmpty());
  EXPECT_THAT(split("Hello, world 2024!"), ElementsAre("Hello", ",", " world", " 2024", "!"));
  EXPECT_THAT(split("don't we'LL '"), ElementsAre("don", "'t", " we", "'", "LL", " '"));
  EXPECT_THAT(split("they've I'm he'd we're"),
              ElementsAre("they", "'ve", " I", "'m", " he", "'d", " we", "'re"));
  EXPECT_THAT(split("a  b"), ElementsAre("a", " ", " b"));
  EXPECT_THAT(split("a \n b "), ElementsAre("a", " \n", " b", " "));
  EXPECT_THAT(split("  "), ElementsAre("  "));
  EXPECT_THAT(split("\tx"), ElementsAre("\t", "x"));
  EXPECT_THAT(split("na\u00efve\u4e2d\u6587\u3000!"),
              ElementsAre("na\u00efve\u4e2d\u6587", "\u3000", "!"));
}

TEST(PreTokenizer, SmollmTakesDigitsAlone) {
  const auto split = [](std::string_view text) { return words(PreTokenizer::kSmollm, text); };
  EXPECT_THAT(split("in 2024a"), ElementsAre("in", " ", "2", "0", "2", "4", "a"));
  EXPECT_THAT(split("a  1"), ElementsAre("a", "  ", "1"));  // the look-ahead ends at the digit
  EXPECT_THAT(split("x\u00b2\u2167"), ElementsAre("x", "\u00b2", "\u2167"));
}

TEST(PreTokenizer, Qwen2) {
  const auto split = [](std::string_view text) { return words(PreTokenizer::kQwen2, text); };
  EXPECT_THAT(split("DON'T we'll"), ElementsAre("DON", "'T", " we", "'ll"));
  EXPECT_THAT(split("it'\u017fx"), ElementsAre("it", "'\u017f", "x"));
  EXPECT_THAT(split("(word) 12"), ElementsAre("(word", ")", " ", "1", "2"));
  EXPECT_THAT(split("a!!\r\n\nb"), ElementsAre("a", "!!\r\n\n", "b"));
  EXPECT_THAT(split("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(split("\nx"), ElementsAre("\n", "x"));
  EXPECT_THAT(split("e\u0301a"), ElementsAre("\u00e9a"));
}

TEST(PreTokenizer, NamesAreThoseOfGguf) {
  EXPECT_EQ(pre_tokenizer_from_name("smollm"), PreTokenizer::kSmollm);
  EXPECT_EQ(pre_tokenizer_from_name("default"), PreTokenizer::kGpt2);
  EXPECT_FALSE(pre_tokenizer_from_name("llama-bpe").has_value());
  EXPECT_EQ(pre_tokenizer_names(), "default, gpt-2, qwen2, smollm");
}

// Counts of the Unicode Character Database, version 16.0.
TEST(UnicodeClasses, CountEveryCharacter) {
  int letters = 0;
  int numbers = 0;
  int numbers_v17 = 0;
  int spaces = 0;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    letters += is_letter(c);
    numbers += is_number(c);
    numbers_v17 += is_number_v17(c);
    spaces += is_white_space(c);
    ASSERT_LE(is_letter(c) + is_number(c) + is_white_space(c), 1);
  }
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(numbers_v17, 1924);
  EXPECT_EQ(spaces, 25);
}

}  // namespace
}  // namespace reckon
