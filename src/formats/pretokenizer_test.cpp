#include "formats/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "formats/unicode_classes.h"

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> words(SplitPattern pattern, std::string_view text) {
  std::vector<std::string> out;
  split_by_pattern(pattern, text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

std::vector<std::string> words(const PreTokenizer& pre, std::string_view text,
                               PreTokenizer::Start start = PreTokenizer::Start::kFirst) {
  std::vector<std::string> out;
  pre.split(text, start, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

TEST(PreTokenizer, LlamaCppsDefault) {
  PreTokenizer pre;
  for (const SplitPattern pattern : {SplitPattern::kPunctuation, SplitPattern::kGpt2,
                                     SplitPattern::kNumbers, SplitPattern::kThreeDigits}) {
    pre.add_pattern(pattern);
  }
  const auto split = [&](std::string_view text) { return words(pre, text); };
  EXPECT_THAT(split("the 1234 (cat) don't"),
              ElementsAre("the", " ", "123", "4", " ", "(", "cat", ")", " don", "'", "t"));
  EXPECT_THAT(split("a+b=<|>^~$ `c`"), ElementsAre("a", "+", "b", "=<|>^~$", " `", "c", "`"));
  EXPECT_THAT(split("x\n\ny  z"), ElementsAre("x", "\n", "\n", "y", " ", " z"));
  EXPECT_THAT(split("\u20ac\u2026\u00bd"), ElementsAre("\u20ac", "\u2026", "\u00bd"));
  EXPECT_THAT(split("1234567"), ElementsAre("123", "456", "7"));
}

TEST(PreTokenizer, Gpt2) {
  const auto split = [](std::string_view text) { return words(SplitPattern::kGpt2, text); };
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
  PreTokenizer pre;
  pre.add_digits(SplitBehavior::kIsolated);
  pre.add_pattern(SplitPattern::kGpt2);
  const auto split = [&](std::string_view text) { return words(pre, text); };
  EXPECT_THAT(split("in 2024a"), ElementsAre("in", " ", "2", "0", "2", "4", "a"));
  EXPECT_THAT(split("a  1"), ElementsAre("a", "  ", "1"));  // the look-ahead ends at the digit
  EXPECT_THAT(split("x\u00b2\u2167"), ElementsAre("x", "\u00b2", "\u2167"));
}

TEST(PreTokenizer, Qwen2) {
  const auto split = [](std::string_view text) { return words(SplitPattern::kQwen2, text); };
  EXPECT_THAT(split("DON'T we'll"), ElementsAre("DON", "'T", " we", "'ll"));
  EXPECT_THAT(split("it'\u017fx"), ElementsAre("it", "'\u017f", "x"));
  EXPECT_THAT(split("(word) 12"), ElementsAre("(word", ")", " ", "1", "2"));
  EXPECT_THAT(split("a!!\r\n\nb"), ElementsAre("a", "!!\r\n\n", "b"));
  EXPECT_THAT(split("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(split("\nx"), ElementsAre("\n", "x"));
}

TEST(PreTokenizer, Llama3TakesThreeNumbers) {
  const auto split = [](std::string_view text) { return words(SplitPattern::kLlama3, text); };
  EXPECT_THAT(split("in 20245 x"), ElementsAre("in", " ", "202", "45", " x"));
  EXPECT_THAT(split("e\u0301a"), ElementsAre("e", "\u0301a"));
}

TEST(PreTokenizer, Qwen35CountsMarksAsLetters) {
  const auto split = [](std::string_view text) { return words(SplitPattern::kQwen35, text); };
  EXPECT_THAT(split("e\u0301a !\u0301"), ElementsAre("e\u0301a", " !", "\u0301"));
  EXPECT_THAT(split("\u0301"), ElementsAre("\u0301"));
}

TEST(PreTokenizer, DeepseekV3) {
  PreTokenizer pre;
  pre.add_pattern(SplitPattern::kUpToThreeNumbers);
  pre.add_pattern(SplitPattern::kHanAndKana);
  pre.add_pattern(SplitPattern::kDeepseekV3);
  const auto split = [&](std::string_view text) { return words(pre, text); };
  EXPECT_THAT(split("a.b 12345"), ElementsAre("a", ".b", " ", "123", "45"));
  EXPECT_THAT(split("\u4e2d\u6587a"), ElementsAre("\u4e2d\u6587", "a"));
  EXPECT_THAT(split("!!\n x"), ElementsAre("!!\n", " x"));
  EXPECT_THAT(split("\x01\x02"
                    "a"),
              ElementsAre("\x01",
                          "\x02"
                          "a"));  // neither is matched alone
}

TEST(PreTokenizer, LiteralsGoWhereTheBehaviorSays) {
  const auto split = [](SplitBehavior behavior) {
    PreTokenizer pre;
    pre.add_literal("-", behavior);
    return words(pre, "-a--b-");
  };
  EXPECT_THAT(split(SplitBehavior::kIsolated), ElementsAre("-", "a", "-", "-", "b", "-"));
  EXPECT_THAT(split(SplitBehavior::kRemoved), ElementsAre("a", "b"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithPrevious), ElementsAre("-", "a-", "-", "b-"));
  EXPECT_THAT(split(SplitBehavior::kMergedWithNext), ElementsAre("-a", "-", "-b", "-"));
  EXPECT_THAT(split(SplitBehavior::kContiguous), ElementsAre("-", "a", "--", "b", "-"));
}

TEST(PreTokenizer, MetaspacePrependsWhereItsSchemeSays) {
  const auto split = [](PrependScheme scheme, PreTokenizer::Start start) {
    PreTokenizer pre;
    pre.add_metaspace("_", scheme, true);
    return words(pre, "a b", start);
  };
  using Start = PreTokenizer::Start;
  EXPECT_THAT(split(PrependScheme::kAlways, Start::kLater), ElementsAre("_a", "_b"));
  EXPECT_THAT(split(PrependScheme::kAlways, Start::kContinues), ElementsAre("a", "_b"));
  EXPECT_THAT(split(PrependScheme::kFirst, Start::kFirst), ElementsAre("_a", "_b"));
  EXPECT_THAT(split(PrependScheme::kFirst, Start::kLater), ElementsAre("a", "_b"));
  EXPECT_THAT(split(PrependScheme::kNever, Start::kFirst), ElementsAre("a", "_b"));
}

// Counts of the Unicode Character Database, version 16.0.
TEST(UnicodeClasses, CountEveryCharacter) {
  int letters = 0;
  int numbers = 0;
  int numbers_v17 = 0;
  int spaces = 0;
  int marks = 0;
  int punctuation = 0;
  int symbols = 0;
  int words = 0;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    letters += is_letter(c);
    numbers += is_number(c);
    numbers_v17 += is_number_v17(c);
    spaces += is_white_space(c);
    marks += is_mark(c);
    punctuation += is_punctuation(c);
    symbols += is_symbol(c);
    words += is_word(c);
    ASSERT_LE(is_letter(c) + is_mark(c) + is_number(c) + is_punctuation(c) + is_symbol(c) +
                  is_white_space(c),
              1);
  }
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_EQ(numbers_v17, 1924);
  EXPECT_EQ(spaces, 25);
  EXPECT_EQ(marks, 2501);
  EXPECT_EQ(punctuation, 855);
  EXPECT_EQ(symbols, 8514);
  EXPECT_EQ(words, 144667);
}

}  // namespace
}  // namespace reckon
