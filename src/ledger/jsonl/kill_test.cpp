// Appends survive SIGKILL at any moment, and appends of several processes do not mix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "ledger/catalog.h"
#include "ledger/catalog_testing.h"
#include "ledger/fold.h"
#include "ledger/jsonl/jsonl_store.h"
#include "ledger/synthetic_testing.h"
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

using Append = std::function<bool(int number)>;

// Appends until killed; after each append says so through the pipe. Never returns.
[[noreturn]] void append_until_killed(const Append& append, int acknowledge) {
  for (int number = 0;; ++number) {
    if (!append(number) || ::write(acknowledge, "x", 1) != 1) ::_exit(1);
  }
}

enum class From { kStart, kFirstAppend };

// Starts a child that appends, kills it `delay` later, and returns how many appends it finished.
int killed_after(const Append& append, From from, std::chrono::microseconds delay) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) append_until_killed(append, ends[1]);
  ::close(ends[1]);
  int acknowledged = 0;
  char byte = 0;
  if (from == From::kFirstAppend && ::read(ends[0], &byte, 1) == 1) ++acknowledged;
  std::this_thread::sleep_for(delay);
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "an append failed before the kill";
  while (::read(ends[0], &byte, 1) == 1) ++acknowledged;
  ::close(ends[0]);
  return acknowledged;
}

// Every other kill waits for a finished append, so that some are finished on any machine.
From turn(int child) {
  return child % 2 == 0 ? From::kStart : From::kFirstAppend;
}

// By the index as it was kept up to date, by a new one, and by the lines: all the same.
void expect_index_equal(const Store& store, const std::vector<Scope>& scopes) {
  test::expect_equal_answers(store, scopes);
  const std::vector<Summary> kept = open_catalog(store).value()->list().value();
  std::filesystem::remove_all(store.indexed_folder() / ".reckon-index");
  EXPECT_TRUE(kept == open_catalog(store).value()->list().value());
  test::expect_equal_answers(store, scopes);
}

TEST(Kill, EveryFinishedAppendIsThereExactlyOnce) {
  const test::TemporaryFolder folder;
  const auto store = open_jsonl_store(folder.path().string()).value();
  std::mt19937 random(20260914);
  std::uniform_int_distribution<int> delay_us(500, 30000);
  size_t acknowledged_total = 0;
  for (int child = 0; child < kKills; ++child) {
    const auto append = [&](int number) {
      const Event event = numbered("ann", child, number);
      return store->append({&event, 1}).ok();
    };
    const int acknowledged =
        killed_after(append, turn(child), std::chrono::microseconds(delay_us(random)));
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
  EXPECT_GE(acknowledged_total, static_cast<size_t>(kKills / 2));
  EXPECT_GT(report.events.size(), acknowledged_total);
  EXPECT_LE(report.events.size(), acknowledged_total + static_cast<size_t>(kKills) + 1);
  EXPECT_EQ(fold(report.events).entries.size(), report.events.size());
  RecordProperty("finished_appends", static_cast<int>(acknowledged_total));
  RecordProperty("torn_lines", static_cast<int>(store->verify().value().notes.size()));
  expect_index_equal(*store, {test::expert_tile_scope()});
}

// Kills as soon as the file is seen to grow, which on most systems tears the line; whether it did
// or not, the next append must find a clean end.
TEST(Kill, ALineTornByAKillNeverMixesWithTheNext) {
  const int tears = kStress ? 100 : 15;
  constexpr size_t kLongLineBytes = 2 << 20;
  const test::TemporaryFolder folder;
  const auto store = open_jsonl_store(folder.path().string()).value();
  const std::filesystem::path file = folder.path() / "ann-2026-09.jsonl";
  size_t set_aside = 0;
  for (int child = 0; child < tears; ++child) {
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
  const Event last = numbered("ann", 2 * tears, 0, 10);
  set_aside += store->append({&last, 1}).value().warnings.size();
  RecordProperty("torn_lines", static_cast<int>(set_aside));
  if (kStress) {
    EXPECT_GT(set_aside, 0U) << "no kill came in the middle of a line";
  }
  const ReadReport report = store->read().value();
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_EQ(report.events.size() + set_aside, static_cast<size_t>(2 * tears + 1));
  EXPECT_EQ(store->verify().value().notes.size(), set_aside);
  expect_index_equal(*store, {test::expert_tile_scope()});
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
    expect_index_equal(*store, {test::expert_tile_scope()});
  }
}

// Killed while it appends whole entries, a line an event, and brings the index up to date in turn.
TEST(Kill, TheIndexSurvives) {
  const test::TemporaryFolder folder;
  const auto store = open_jsonl_store(folder.path().string()).value();
  std::mt19937 random(20261130);
  std::uniform_int_distribution<int> delay_us(500, 40000);
  std::vector<Scope> scopes;
  size_t acknowledged = 0;
  for (int child = 0; child < kKills / 2; ++child) {
    test::SyntheticLedger source(static_cast<uint64_t>(child) + 1);
    const auto append = [&](int /*number*/) {
      return store->append(source.next()).ok() && open_catalog(*store).ok();
    };
    acknowledged += static_cast<size_t>(
        killed_after(append, turn(child), std::chrono::microseconds(delay_us(random))));
    for (const Event& event : source.next()) {  // the first entry of the child
      if (event.type == EventType::kIdea && child % 4 == 1) {
        scopes.push_back(decode<IdeaBody>(event.body).value().scope);
      }
    }
    ASSERT_EQ(open_catalog(*store).value()->list().value().size(),
              fold(store->read().value().events).entries.size());
  }
  const std::vector<Entry> entries = fold(store->read().value().events).entries;
  EXPECT_GE(acknowledged, static_cast<size_t>(kKills / 4));
  EXPECT_GE(entries.size(), acknowledged);
  EXPECT_TRUE(std::any_of(entries.begin(), entries.end(),
                          [](const Entry& entry) { return entry.verdict.has_value(); }));
  expect_index_equal(*store, scopes);
}

}  // namespace
}  // namespace reckon::ledger
