#include "adapters/shell_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon::adapters {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> words(std::string_view command) {
  std::vector<std::string> texts;
  for (const ShellWord& word : shell_words(command)) texts.push_back(word.text);
  return texts;
}

TEST(ShellWords, ReadsWhatNeedsNoShell) {
  EXPECT_THAT(words("gzip -6 -c data"), ElementsAre("gzip", "-6", "-c", "data"));
  EXPECT_THAT(words("  python3\t'a b.py' \"c\"d "), ElementsAre("python3", "a b.py", "cd"));
  EXPECT_THAT(words("A=1 B='x y' ./run C=2"), ElementsAre("./run", "C=2"));
  EXPECT_THAT(words(""), IsEmpty());
}

TEST(ShellWords, StopsAtTheFirstWordThatDoes) {
  EXPECT_THAT(words("gzip -c data > /dev/null"), ElementsAre("gzip", "-c", "data"));
  EXPECT_THAT(words("gzip data>out"), ElementsAre("gzip"));
  EXPECT_THAT(words("a b|c"), ElementsAre("a"));
  EXPECT_THAT(words("./a $X b"), ElementsAre("./a"));
  EXPECT_THAT(words("./a \"$X\" b"), ElementsAre("./a"));
  EXPECT_THAT(words("./a '$X' b"), ElementsAre("./a", "$X", "b"));
  EXPECT_THAT(words("./a 'open"), ElementsAre("./a"));
  EXPECT_THAT(words("(cd x; ./a)"), IsEmpty());
}

TEST(ShellWords, SaysWhereWordsStand) {
  const std::string text = "X=1 './a b' c";
  const std::vector<ShellWord> found = shell_words(text);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(text.substr(found[0].begin, found[0].end - found[0].begin), "'./a b'");
}

}  // namespace
}  // namespace reckon::adapters
