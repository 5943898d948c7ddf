#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace reckon {
namespace {

TEST(ThreadPool, RunsEachTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      pool.parallel_for(tasks, [&](int64_t task) { ++runs[static_cast<size_t>(task)]; });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

// The first task ends only when all others have: whoever runs it must not hold up a share of them.
TEST(ThreadPool, AThreadThatIsHeldUpLeavesTheRestToTheOthers) {
  ThreadPool pool(2);
  constexpr int64_t kTasks = 64;
  std::atomic<int64_t> others{0};
  pool.parallel_for(kTasks, [&](int64_t task) {
    if (task != 0) {
      ++others;
      return;
    }
    while (others.load() != kTasks - 1) std::this_thread::yield();
  });
  EXPECT_EQ(others.load(), kTasks - 1);
}

TEST(ThreadPool, LoopsFollowEachOtherWithoutMixing) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(3);
  for (int64_t round = 0; round < 5000; ++round) {
    sums.assign(3, -1);
    pool.parallel_for(3, [&](int64_t task) { sums[static_cast<size_t>(task)] = round + task; });
    ASSERT_EQ(sums[0] + sums[1] + sums[2], 3 * round + 3);
  }
}

TEST(ThreadPool, WhatTasksWroteIsVisibleAfterTheLoop) {
  ThreadPool pool(0);
  EXPECT_EQ(pool.threads(), ThreadPool::available_cores());
  std::vector<int64_t> squares(10000);
  pool.parallel_for(10000, [&](int64_t i) { squares[static_cast<size_t>(i)] = i * i; });
  EXPECT_EQ(std::accumulate(squares.begin(), squares.end(), int64_t{0}), 333283335000);
}

// In a child with no room for the stacks of so many.
TEST(ThreadPool, SaysWhichThreadCouldNotBeStarted) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer has no room for itself under the limit that this test sets";
#endif
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit room{size_t{1} << 28, size_t{1} << 28};
    if (setrlimit(RLIMIT_AS, &room) != 0) _exit(99);
    try {
      const ThreadPool pool(10'000);
    } catch (const std::system_error& error) {
      const std::string_view what = error.what();
      _exit(what.starts_with("cannot start thread ") && what.find(" of 10000: ") != what.npos ? 0
                                                                                              : 1);
    }
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ThreadPool, APoolWithoutWorkEnds) {
  for (int i = 0; i < 100; ++i) ThreadPool pool(4);
  EXPECT_GE(ThreadPool::available_cores(), 1);
}

}  // namespace
}  // namespace reckon
