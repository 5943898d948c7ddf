// The contract of Store, for every row of the store table.
#include "ledger/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "ledger/fold.h"
#include "ledger/open.h"
#include "ledger/postgres_testing.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using test::at;
using testing::HasSubstr;
using testing::IsEmpty;

class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    if (GetParam().name != "postgres") return;
    RECKON_NEEDS_POSTGRES();
    ASSERT_TRUE(database_.create());
  }

  // A place that holds no ledger yet, for the kind of store under test.
  std::string location() const {
    if (GetParam().name == "jsonl") return (folder_.path() / "deep" / "ledger").string();
    if (GetParam().name == "postgres") return database_.url();
    ADD_FAILURE() << "say where a fresh " << GetParam().name << " ledger can be";
    return "";
  }
  std::unique_ptr<Store> open() const { return open_store(location()).value(); }

  static std::vector<Event> story() {
    const Event idea = test::idea(test::expert_tile_scope());
    return {idea, test::measured(idea.entry, "r1", -0.037),
            test::verdict(idea.entry, test::lost())};
  }

  const test::TemporaryFolder folder_;
  test::PostgresDatabase database_;
};

TEST_P(StoreContract, AnAbsentLedgerIsEmpty) {
  const auto store = open();
  const ReadReport report = store->read().value();
  EXPECT_THAT(report.events, IsEmpty());
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_TRUE(store->verify().value().ok());
  EXPECT_EQ(store->location(), location());
}

TEST_P(StoreContract, ReadsBackWhatWasAppended) {
  EXPECT_EQ(open()->append(story()).value().appended, 3U);
  const auto store = open();
  const ReadReport report = store->read().value();
  EXPECT_EQ(report.events, story());
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_EQ(store->verify().value().events, 3U);
  EXPECT_EQ(fold(report.events).entries.size(), 1U);
}

TEST_P(StoreContract, AppendingNothingIsFine) {
  EXPECT_EQ(open()->append({}).value().appended, 0U);
  EXPECT_THAT(open()->read().value().events, IsEmpty());
}

TEST_P(StoreContract, AnEventAppendedTwiceCountsOnce) {
  const auto store = open();
  ASSERT_TRUE(store->append(story()).ok());
  ASSERT_TRUE(store->append(story()).ok());
  EXPECT_EQ(store->read().value().events, story());
  const VerifyReport report = store->verify().value();
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.events, 3U);
}

TEST_P(StoreContract, ABrokenEventKeepsTheWholeBatchOut) {
  const auto store = open();
  const auto refuse = [&](const Event& event) {
    std::vector<Event> events = story();
    events.push_back(event);
    EXPECT_FALSE(store->append(events).ok());
    EXPECT_THAT(store->read().value().events, IsEmpty());
  };
  Event event = story()[2];
  event.body["verdict"] = "MAYBE";
  refuse(event);
  event = story()[0];
  event.writer = "../x";
  refuse(event);
  event = story()[0];
  event.body["text"] = "\xff";
  refuse(event);
  event = story()[0];
  event.time = "";
  refuse(event);
}

TEST_P(StoreContract, HasAPlaceOnThisMachineWithoutMakingIt) {
  const std::filesystem::path folder = open()->local_folder().value();
  EXPECT_EQ(folder, open()->local_folder().value());
  EXPECT_TRUE(folder.is_absolute());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_P(StoreContract, OrdersByTimeAndKeepsAWritersOwnOrder) {
  const Event late = test::idea(test::expert_tile_scope(), "ann", at(5));
  const Event clock_went_back = test::measured(late.entry, "r1", 0.1, at(4));
  const Event early = test::idea(test::expert_tile_scope(), "bob", at(1));
  const Event next_month = test::idea(test::expert_tile_scope(), "abe", "2026-10-01T00:00:00Z");
  ASSERT_TRUE(open()->append(std::vector<Event>{next_month, late, clock_went_back, early}).ok());
  const std::vector<Event> expected = {early, late, clock_went_back, next_month};
  EXPECT_EQ(open()->read().value().events, expected);
}

TEST_P(StoreContract, ConcurrentAppendsNeverInterleave) {
  constexpr int kThreads = 4;
  constexpr int kAppends = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      const auto store = open();
      for (int i = 0; i < kAppends; ++i) {
        IdeaBody body;
        body.scope = test::expert_tile_scope();
        body.text = "thread " + std::to_string(t) + " event " + std::to_string(i);
        body.reproduce.queue_text = std::string(5000, 'q');
        const Event event = make_first_event(EventType::kIdea, encode(body), "ann", at(i)).value();
        EXPECT_TRUE(store->append(std::vector<Event>{event}).ok());
        EXPECT_THAT(store->read().value().warnings, IsEmpty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const ReadReport report = open()->read().value();
  EXPECT_EQ(report.events.size(), size_t{kThreads * kAppends});
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_TRUE(open()->verify().value().ok());
}

INSTANTIATE_TEST_SUITE_P(Table, StoreContract,
                         testing::ValuesIn(store_kinds().begin(), store_kinds().end()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(OpenStore, RefusesWhatThisVersionDoesNotHave) {
  const auto url = open_store("mysql://ann:secret@host/reckon");
  ASSERT_FALSE(url.ok());
  EXPECT_EQ(url.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(url.error().message, HasSubstr("mysql://"));
  EXPECT_THAT(url.error().message, HasSubstr("no ledger that this version knows"));
  EXPECT_THAT(url.error().message, testing::Not(HasSubstr("secret")));
  EXPECT_EQ(open_store("").error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace reckon::ledger
