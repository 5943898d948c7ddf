// Appends survive SIGKILL at any moment, and appends of several processes do not mix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "ledger/catalog.h"
#include "ledger/fold.h"
#include "ledger/jsonl/jsonl_store.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using test::at;
using testing::IsEmpty;

// With RECKON_STRESS=1 as long as a release wants it: minutes.
const bool kStress = std::getenv("RECKON_STRESS") != nullptr;
const int kKills = kStress ? 100 : 40;
constexpr size_t kPaddingBytes = 20000;  // several pages, so that a kill can tear a line

Event numbered(const std::string& writer, int child, int number,
               size_t padding_bytes = kPaddingBytes) {
  IdeaBody body;
  body.scope = test::expert_tile_scope();
  body.text = std::to_string(child) + "/" + std::to_string(number);
  body.reproduce.queue_text = std::string(padding_bytes, static_cast<char>('a' + number % 26));
  return make_first_event(EventType::kIdea, encode(body), writer, at(number % 60)).value();
}

// Appends events until killed; after each append says so through the pipe. Never returns.
[[noreturn]] void append_until_killed(const std::string& folder, int child, int acknowledge) {
  const auto store = open_jsonl_store(folder).value();
  for (int number = 0;; ++number) {
    const Event event = numbered("ann", child, number);
    if (!store->append({&event, 1}).ok()) _exit(1);
    if (::write(acknowledge, "x", 1) != 1) _exit(1);
  }
}

// Starts a child that appends, kills it after `delay`, and returns how many appends it finished.
int killed_after(const std::string& folder, int child, std::chrono::microseconds delay) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) append_until_killed(folder, child, ends[1]);
  ::close(ends[1]);
  std::this_thread::sleep_for(delay);
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "an append failed before the kill";
  int acknowledged = 0;
  char byte = 0;
  while (::read(ends[0], &byte, 1) == 1) ++acknowledged;
  ::close(ends[0]);
  return acknowledged;
}

TEST(Kill, EveryFinishedAppendIsThereExactlyOnce) {
  const test::TemporaryFolder folder;
  const auto store = open_jsonl_store(folder.path().string()).value();
  std::mt19937 random(20260914);
  std::uniform_int_distribution<int> delay_us(500, 30000);
  size_t acknowledged_total = 0;
  for (int child = 0; child < kKills; ++child) {
    const int acknowledged =
        killed_after(folder.path().string(), child, std::chrono::microseconds(delay_us(random)));
    acknowledged_total += static_cast<size_t>(acknowledged);
    const ReadReport report = store->read().value();
    ASSERT_LE(report.warnings.size(), 1U);
    std::vector<std::string> expected;
    for (int number = 0; number < acknowledged; ++number) {
      expected.push_back(std::to_string(child) + "/" + std::to_string(number));
    }
    std::vector<std::string> found;
    for (const Event& event : report.events) {
      const std::string text = event.body["text"];
      if (text.starts_with(std::to_string(child) + "/")) found.push_back(text);
    }
    // The last one may be complete without the child having lived to say so.
    if (found.size() == expected.size() + 1) {
      expected.push_back(std::to_string(child) + "/" + std::to_string(acknowledged));
    }
    ASSERT_THAT(found, testing::UnorderedElementsAreArray(expected)) << "child " << child;
    const VerifyReport verified = store->verify().value();
    ASSERT_TRUE(verified.ok()) << verified.errors.front();
  }
  const Event last = numbered("ann", kKills, 0);
  ASSERT_TRUE(store->append({&last, 1}).ok());
  const ReadReport report = store->read().value();
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_GT(report.events.size(), acknowledged_total);
  EXPECT_LE(report.events.size(), acknowledged_total + static_cast<size_t>(kKills) + 1);
  EXPECT_EQ(fold(report.events).entries.size(), report.events.size());
}

// Kills as soon as the file is seen to grow, which on most systems tears the line; whether it did
// or not, the next append must find a clean end.
TEST(Kill, ALineTornByAKillNeverMixesWithTheNext) {
  constexpr int kTears = 15;
  constexpr size_t kLongLineBytes = 2 << 20;
  const test::TemporaryFolder folder;
  const auto store = open_jsonl_store(folder.path().string()).value();
  const std::filesystem::path file = folder.path() / "ann-2026-09.jsonl";
  size_t set_aside = 0;
  for (int child = 0; child < kTears; ++child) {
    const Event before = numbered("ann", 2 * child, 0, 10);
    const AppendReport report = store->append({&before, 1}).value();
    set_aside += report.warnings.size();
    const auto size = std::filesystem::file_size(file);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const Event event = numbered("ann", 2 * child + 1, 0, kLongLineBytes);
      _exit(open_jsonl_store(folder.path().string()).value()->append({&event, 1}).ok() ? 0 : 1);
    }
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::filesystem::file_size(file) == size && std::chrono::steady_clock::now() < give_up) {
    }
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  const Event last = numbered("ann", 2 * kTears, 0, 10);
  set_aside += store->append({&last, 1}).value().warnings.size();
  RecordProperty("torn_lines", static_cast<int>(set_aside));
  const ReadReport report = store->read().value();
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_EQ(report.events.size() + set_aside, size_t{2 * kTears + 1});
  EXPECT_EQ(store->verify().value().notes.size(), set_aside);
}

// Entries by the index as it was kept up to date, by a new one, and by the lines: all the same.
void expect_index_equal(const Store& store) {
  const auto list = [&] { return open_catalog(store).value()->list().value(); };
  const std::vector<Summary> kept = list();
  std::filesystem::remove_all(store.indexed_folder() / ".reckon-index");
  EXPECT_TRUE(kept == list());
  EXPECT_TRUE(kept == open_catalog_without_index(store).value()->list().value());
}

// Appends `events` short events from each of two processes at once, to one file.
void append_from_two_processes(const std::string& folder, int events) {
  constexpr size_t kShortBytes = 100;
  constexpr int kOpenEvery = 50;  // brings the index up to date meanwhile
  std::vector<pid_t> children;
  for (int child = 0; child < 2; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto store = open_jsonl_store(folder).value();
      bool ok = true;
      for (int number = 0; number < events; ++number) {
        const Event event = numbered("ann", child, number, kShortBytes);
        ok = ok && store->append({&event, 1}).ok();
        if (number % kOpenEvery == 0) ok = ok && open_catalog(*store).ok();
      }
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

TEST(Kill, TwoProcessesAppendToOneFile) {
  const int runs = kStress ? 20 : 1;
  const int events = kStress ? 5000 : 100;
  for (int run = 0; run < runs; ++run) {
    const test::TemporaryFolder folder;
    append_from_two_processes(folder.path().string(), events);
    const auto store = open_jsonl_store(folder.path().string()).value();
    const ReadReport report = store->read().value();
    EXPECT_EQ(report.events.size(), static_cast<size_t>(2 * events));
    EXPECT_THAT(report.warnings, IsEmpty());
    EXPECT_TRUE(store->verify().value().ok());
    expect_index_equal(*store);
  }
}

// Killed while it appends and brings the index up to date in turn.
TEST(Kill, TheIndexSurvives) {
  const test::TemporaryFolder folder;
  const auto store = open_jsonl_store(folder.path().string()).value();
  std::mt19937 random(20261130);
  std::uniform_int_distribution<int> delay_us(500, 40000);
  for (int child = 0; child < kKills / 2; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (int number = 0;; ++number) {
        const Event event = numbered("ann", child, number, 100);
        if (!store->append({&event, 1}).ok() || !open_catalog(*store).ok()) ::_exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us(random)));
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(open_catalog(*store).value()->list().value().size(),
              store->read().value().events.size());
  }
  expect_index_equal(*store);
}

}  // namespace
}  // namespace reckon::ledger
