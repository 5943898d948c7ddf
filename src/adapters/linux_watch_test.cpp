#include "adapters/linux_watch.h"

#include <gtest/gtest.h>

#include <chrono>

namespace reckon::adapters {
namespace {

constexpr const char* kStat =
    "cpu  300 0 30 3000 0 0 0 60 0 0\n"
    "cpu0 100 5 10 1000 7 1 2 20 50 0\n"
    "cpu1 100 0 10 1000 0 0 0 20 0 0\n"
    "cpu12 100 0 10 1000 0 0 0 20 0 0\n"
    "intr 12345 0 0\n";

TEST(LinuxWatch, ReadsTheProcessorsThatCount) {
  const auto one = parse_cpu_ticks(kStat, {0});
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->busy, 100 + 5 + 10 + 1 + 2);
  EXPECT_EQ(one->stolen, 20);
  EXPECT_EQ(one->total, 118 + 1000 + 7 + 20);
  const auto two = parse_cpu_ticks(kStat, {1, 12});
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->busy, 220);
  EXPECT_FALSE(parse_cpu_ticks(kStat, {5}).has_value());
  EXPECT_FALSE(parse_cpu_ticks("cpu0 1 2\ncpu1\n", {0, 1}).has_value());
  EXPECT_FALSE(parse_cpu_ticks("", {0}).has_value());
}

TEST(LinuxWatch, ReadsAProcessWhateverItIsCalled) {
  EXPECT_EQ(
      parse_process_ticks("4242 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 5 0 99 1 2\n"),
      127);
  EXPECT_FALSE(parse_process_ticks("4242 (short) S 1 2 3").has_value());
  EXPECT_FALSE(parse_process_ticks("").has_value());
  EXPECT_FALSE(parse_process_ticks("1 (x)").has_value());
}

TEST(LinuxWatch, GivesAWindowOnceItIsLongEnough) {
  const auto watch = open_machine_watch();
  EXPECT_FALSE(watch->look(-1).has_value()) << "too short";
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) {
  }
  const auto window = watch->look(-1);
  ASSERT_TRUE(window.has_value());
  EXPECT_GE(window->seconds, 0.25);
  ASSERT_TRUE(window->other_share.has_value());
  EXPECT_GE(*window->other_share, 0);
  EXPECT_LE(*window->other_share, 1);
}

}  // namespace
}  // namespace reckon::adapters
