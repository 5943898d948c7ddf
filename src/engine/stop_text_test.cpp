#include "engine/stop_text.h"

#include <gtest/gtest.h>

#include <random>

namespace reckon::engine {
namespace {

struct Ended {
  std::string text;
  bool stopped = false;
};

Ended feed(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  auto stop = StopText::create(stops);
  EXPECT_TRUE(stop.ok());
  std::string text;
  for (const std::string& piece : pieces) text += stop->push(piece);
  const bool stopped = stop->stopped();
  return {text + stop->flush(), stopped};
}

TEST(StopText, EndsBeforeAStopThatSpansPieces) {
  const Ended ended = feed({"END"}, {"one E", "N", "D two"});
  EXPECT_EQ(ended.text, "one ");
  EXPECT_TRUE(ended.stopped);
}

TEST(StopText, LetsGoOfWhatDidNotBecomeAStop) {
  auto stop = StopText::create({"\n\nQ:"});
  ASSERT_TRUE(stop.ok());
  EXPECT_EQ(stop->push("a\n"), "a");
  EXPECT_EQ(stop->push("\n"), "");
  EXPECT_EQ(stop->push("\n"), "\n");  // the last two may still begin it
  EXPECT_EQ(stop->push("Q"), "");
  EXPECT_EQ(stop->push("!"), "\n\nQ!");
  EXPECT_EQ(stop->push("\n\n"), "");
  EXPECT_FALSE(stop->stopped());
  EXPECT_EQ(stop->flush(), "\n\n");
}

TEST(StopText, TheFirstToBeCompleteCountsAndTheLongestOfThose) {
  EXPECT_EQ(feed({"abcd", "c"}, {"xabcd"}).text, "xab");
  EXPECT_EQ(feed({"c", "abc"}, {"xab", "c"}).text, "x");
  EXPECT_EQ(feed({"aab"}, {"aaab"}).text, "a");  // an end that overlaps its own beginning
}

TEST(StopText, WithoutStopsEverythingPassesAtOnce) {
  auto stop = StopText::create({});
  ASSERT_TRUE(stop.ok());
  EXPECT_EQ(stop->push("any\n"), "any\n");
  EXPECT_EQ(stop->flush(), "");
}

TEST(StopText, NothingComesAfterAStop) {
  auto stop = StopText::create({"."});
  ASSERT_TRUE(stop.ok());
  EXPECT_EQ(stop->push("a.b"), "a");
  EXPECT_EQ(stop->push("c"), "");
  EXPECT_EQ(stop->flush(), "");
}

// Against the definition: the shortest beginning that ends with a stop, without its longest one.
Ended expected(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopText, DoesNotDependOnThePieces) {
  std::mt19937 random(5);
  const auto letters = [&](size_t most) {
    std::string text;
    for (size_t n = random() % most + 1; n > 0; --n) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string> stops = {letters(6), letters(8)};
    std::vector<std::string> pieces;
    std::string whole;
    for (int i = 0; i < 5; ++i) whole += pieces.emplace_back(letters(5));
    const Ended want = expected(stops, whole);
    const Ended got = feed(stops, pieces);
    ASSERT_EQ(got.text, want.text) << whole << " by " << stops[0] << ", " << stops[1];
    ASSERT_EQ(got.stopped, want.stopped);
  }
}

TEST(StopText, RefusesWhatCanNeverMatch) {
  for (const char* bad : {"", "\xff", "caf\xc3"}) {
    const auto stop = StopText::create({"fine", bad});
    ASSERT_FALSE(stop.ok());
    EXPECT_EQ(stop.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace reckon::engine
