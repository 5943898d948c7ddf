#include "formats/text_finder.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>

namespace reckon {
namespace {

TextFinder finder_of(const std::vector<std::string>& strings) {
  TextFinder finder;
  for (size_t i = 0; i < strings.size(); ++i) finder.add(strings[i], static_cast<int32_t>(i));
  finder.finish();
  return finder;
}

// The longest string at each place, the first of equal ones.
void expect_all(const std::vector<std::string>& strings, std::string_view text) {
  const auto matches = finder_of(strings).find_all(text);
  size_t found = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t best = strings.size();
    for (size_t s = 0; s < strings.size(); ++s) {
      if (!text.substr(i).starts_with(strings[s])) continue;
      if (best == strings.size() || strings[s].size() > strings[best].size()) best = s;
    }
    if (best == strings.size()) continue;
    ASSERT_LT(found, matches.size()) << text;
    EXPECT_EQ(matches[found].begin, i) << text;
    EXPECT_EQ(matches[found].length, strings[best].size()) << text;
    EXPECT_EQ(matches[found].value, static_cast<int32_t>(best)) << text;
    ++found;
  }
  EXPECT_EQ(found, matches.size()) << text;
}

TEST(TextFinder, FindsTheLongestStringAtEachPlace) {
  expect_all({"<a>", "<a><b>", "a>", ">", "<a>"}, "<a><b><a> a>x");
  expect_all({"abcd", "bc", "c"}, "abcabcd");
  expect_all({}, "abc");
  expect_all({"a"}, "");
  std::mt19937 random(1);
  const auto word = [&](size_t longest) {
    std::string made;
    const size_t size = 1 + random() % longest;
    while (made.size() < size) made += static_cast<char>('a' + random() % 2);
    return made;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> strings;
    for (size_t i = random() % 12; i-- > 0;) strings.push_back(word(6));
    expect_all(strings, word(40));
  }
}

TEST(TextFinder, LongStringsThatAreAlikeCostNoMore) {
  const std::string text(size_t{1} << 21, 'a');
  const auto work = [&](size_t length) {
    const TextFinder finder = finder_of({std::string(length, 'a') + "b", "ca"});
    const std::clock_t start = std::clock();
    EXPECT_TRUE(finder.find_all(text).empty());
    return static_cast<double>(std::clock() - start);
  };
  EXPECT_LT(work(20'000), 8 * work(2) + 0.1 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace reckon
