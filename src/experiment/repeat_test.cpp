// The ledger answers before anything is measured: repeats, stale sources, neighbours, overrides.
#include <gmock/gmock.h>

#include <filesystem>
#include <span>

#include "experiment/run.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using ledger::Verdict;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class RepeatTest : public LedgerTest {
 protected:
  const std::string slower_ = ab_experiment("slower", "variant=v2,speed=0.95");
};

TEST_F(RepeatTest, ExactRepeatIsRefusedWithNumberDateAndOverride) {
  store_noise();
  const Outcome first = run_one(slower_);
  ASSERT_EQ(first.verdict(), Verdict::kLost);
  const Outcome second = refused(slower_);
  EXPECT_THAT(second.text, AllOf(HasSubstr(first.entry), HasSubstr("LOST -5.0%"),
                                 HasSubstr(read().find(first.entry)->verdict_time.substr(0, 10)),
                                 HasSubstr("--force")));
  EXPECT_THAT(refused(ab_experiment("renamed", "variant=v2,speed=0.95")).text,
              HasSubstr(first.entry))
      << "the id in the queue is no part of the scope";
}

TEST_F(RepeatTest, BrokenAndVoidAndOutOfMemoryBlock) {
  for (const std::string& experiment :
       {ab_experiment("a", "variant=v2,diverge=1"), ab_experiment("b", "variant=v1,speed=2"),
        ab_experiment("c", "variant=v2,bytes=5000", "    memory_limit: 2000B\n")}) {
    ASSERT_EQ(run_one(experiment).kind, OutcomeKind::kVerdict);
    refused(experiment);
  }
}

TEST_F(RepeatTest, NeutralBlocksOnlyClaimsAtLeastAsLarge) {
  store_noise();
  const auto claiming = [](const char* claim) {
    return ab_experiment("same", "variant=v2", fmt::format("    claim: \"{}\"\n", claim));
  };
  ASSERT_EQ(run_one(claiming("+2%")).verdict(), Verdict::kNeutral);
  refused(claiming("+2%"));
  refused(claiming("+3%"));
  EXPECT_EQ(run_one(claiming("+1%")).kind, OutcomeKind::kVerdict);
}

TEST_F(RepeatTest, ChangedSourceMakesTheEntryStaleAndIsMeasured) {
  store_noise();
  const Outcome first = run_one(slower_);
  ASSERT_EQ(first.verdict(), Verdict::kLost);
  const Outcome second = run_one(slower_, 2, "tiny;source=s2");
  ASSERT_EQ(second.verdict(), Verdict::kLost) << second.text;
  EXPECT_NE(second.entry, first.entry);
  EXPECT_THAT(second.notes, Contains(AllOf(HasSubstr("stale: " + first.entry),
                                           HasSubstr("changed since: matmul.v1, matmul.v2"))));
  refused(slower_, "tiny;source=s2");
}

TEST_F(RepeatTest, VoidBlocksUntilASourceChanges) {
  const std::string nothing = ab_experiment("nothing", "variant=v1,speed=2");
  ASSERT_EQ(run_one(nothing).verdict(), Verdict::kVoid);
  EXPECT_THAT(refused(nothing).text, HasSubstr("once a source or rule in reach changes"));
  EXPECT_EQ(run_one(nothing, 2, "tiny;source=s2").verdict(), Verdict::kVoid);
}

TEST_F(RepeatTest, OtherDeviceIsANeighbourAndIsMeasured) {
  store_noise();
  const Outcome first = run_one(slower_);
  const Outcome elsewhere = run_one(slower_, 2, "tiny;units=64");
  EXPECT_EQ(elsewhere.verdict(), Verdict::kInconclusive) << "no noise is known there";
  EXPECT_THAT(elsewhere.notes, Contains(AllOf(HasSubstr("near: " + first.entry),
                                              HasSubstr("device.units 8 there, 64 here"))));
}

TEST_F(RepeatTest, OverrideIsRecordedAndMeasuresAgain) {
  store_noise();
  const Outcome first = run_one(slower_);
  options_.force_reason = "the fan was\nbroken";
  const Outcome second = run_one(slower_);
  ASSERT_EQ(second.verdict(), Verdict::kLost);
  EXPECT_NE(second.entry, first.entry);
  EXPECT_EQ(second.record->idea.force_reason, "the fan was broken");
  const Outcome unneeded = run_one(ab_experiment("new", "variant=v7,speed=0.9"));
  EXPECT_EQ(unneeded.record->idea.force_reason, "") << "nothing was overridden";
}

TEST_F(RepeatTest, StoredQueueReproducesTheEntry) {
  const Outcome first = run_one(ab_experiment("odd", "variant=v1,speed=2",
                                              "    set: {threads: \"2\"}\n    claim: \"+3%\"\n"));
  ASSERT_EQ(first.verdict(), Verdict::kVoid);
  const QueueOutcome again = run(first.record->idea.reproduce.queue_text);
  ASSERT_THAT(again.experiments, SizeIs(1));
  EXPECT_EQ(again.experiments[0].kind, OutcomeKind::kRefused) << again.experiments[0].text;
  EXPECT_THAT(again.experiments[0].text, HasSubstr(first.entry)) << "the very same scope";
}

TEST_F(RepeatTest, CheckSaysWhatARunWouldDoAndWritesNothing) {
  const std::string experiments =
      ab_experiment("known", "variant=v1,speed=2") + ab_experiment("void", "variant=v1,speed=3") +
      ab_experiment("big", "variant=v2,bytes=5000", "    memory_limit: 2000B\n") +
      ab_experiment("new", "variant=v3", "    claim: \"+2%\"\n") +
      ab_experiment("wrong", "forbidden") + aa_experiment("floor", 20);
  ASSERT_EQ(run_one(ab_experiment("known", "variant=v1,speed=2")).verdict(), Verdict::kVoid);
  store_noise(3);
  const size_t entries = read().entries.size();
  const Result<Queue> queue = parse_queue(queue_text(experiments), "test.yaml");
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  const QueueCheck check = check_queue(*queue, runner_, *store_);
  ASSERT_THAT(check.experiments, SizeIs(6));
  using Kind = CheckedExperiment::Kind;
  EXPECT_EQ(check.experiments[0].kind, Kind::kWouldRefuse);
  EXPECT_EQ(check.experiments[1].kind, Kind::kWouldBeVoid);
  EXPECT_THAT(check.experiments[1].reasons, testing::ElementsAre("the rule of matmul"));
  EXPECT_EQ(check.experiments[2].kind, Kind::kWouldNotFit);
  const CheckedExperiment& fresh = check.experiments[3];
  EXPECT_EQ(fresh.kind, Kind::kWouldRun);
  EXPECT_EQ(fresh.rounds, 2);
  EXPECT_EQ(fresh.pairs, 2);
  EXPECT_TRUE(fresh.seconds.has_value()) << "A/A rounds of this class were timed";
  EXPECT_EQ(fresh.missing_noise_rounds, 17);
  EXPECT_TRUE(fresh.smallest_effect.has_value());
  EXPECT_TRUE(fresh.rounds_to_see.has_value());
  EXPECT_THAT(fresh.only_arm, testing::ElementsAre(HasSubstr("v3")));
  EXPECT_THAT(fresh.notes, Contains(AllOf(HasSubstr("17 missing, which take about"),
                                          HasSubstr("must end INCONCLUSIVE"))));
  EXPECT_THAT(fresh.text,
              AllOf(HasSubstr("would run 2 rounds of 2 pairs, about "), Not(HasSubstr("sees"))))
      << "3 A/A rounds say too little";
  EXPECT_EQ(check.experiments[4].kind, Kind::kFailed);
  EXPECT_EQ(check.experiments[5].kind, Kind::kWouldRun);
  EXPECT_EQ(check.experiments[5].rounds, 17);
  EXPECT_EQ(check.exit_code(), 2);
  EXPECT_EQ(to_json(check)["experiments"].size(), 6u);
  EXPECT_EQ(read().entries.size(), entries);
}

TEST_F(RepeatTest, CheckCountsTheAARoundsThatTheQueueMeasuresFirst) {
  const auto checked = [&](const std::string& experiments) {
    const Result<Queue> queue = parse_queue(queue_text(experiments), "test.yaml");
    EXPECT_TRUE(queue.ok()) << queue.error().message;
    return check_queue(*queue, runner_, *store_).experiments;
  };
  const std::string arm = ab_experiment("new", "variant=v3");
  const auto whole = checked(aa_experiment("floor", 20) + arm);
  EXPECT_EQ(whole[0].text, "would run 20 rounds of 2 pairs; cost: not measured yet");
  EXPECT_THAT(whole[0].notes, IsEmpty());
  EXPECT_EQ(whole[1].text, "would run 2 rounds of 2 pairs; cost: not measured yet");
  EXPECT_THAT(whole[1].notes, testing::ElementsAre(
                                  "0 of 20 A/A rounds of this workload class are stored, and 20 of "
                                  "them once this queue's own are measured"));
  const auto part = checked(aa_experiment("floor", 1) + arm);
  EXPECT_THAT(part[0].notes, testing::ElementsAre(
                                 "1 A/A round leaves 19 of the needed 20 missing: every comparison "
                                 "of this workload class must end INCONCLUSIVE"));
  EXPECT_THAT(part[1].notes, testing::ElementsAre(HasSubstr(
                                 "once this queue's own are measured; 19 missing: it must "
                                 "end INCONCLUSIVE")));
  const auto late = checked(arm + aa_experiment("floor", 20));
  EXPECT_THAT(late[0].notes, testing::ElementsAre("0 of 20 A/A rounds of this workload class are "
                                                  "stored; 20 missing: it must end INCONCLUSIVE"));
}

// Counts how often a ledger is read whole.
class CountingStore : public ledger::Store {
 public:
  explicit CountingStore(ledger::Store& store) : store_(store) {}

  Result<ledger::AppendReport> append(std::span<const ledger::Event> events) override {
    return store_.append(events);
  }
  Result<ledger::ReadReport> read() const override {
    ++reads_;
    return store_.read();
  }
  Result<ledger::VerifyReport> verify() const override { return store_.verify(); }
  const std::string& location() const override { return store_.location(); }
  Result<std::filesystem::path> local_folder() const override { return store_.local_folder(); }
  std::filesystem::path indexed_folder() const override { return store_.indexed_folder(); }
  [[nodiscard]] int reads() const { return reads_; }

 private:
  ledger::Store& store_;
  mutable int reads_ = 0;
};

TEST_F(RepeatTest, ALedgerWithAnIndexIsNotReadWhole) {
  store_noise();
  const Result<Queue> queue =
      parse_queue(queue_text(aa_experiment("floor", 22) +
                             ab_experiment("won", "variant=v2,speed=1.5", "    claim: \"+2%\"\n") +
                             ab_experiment("open", "variant=v3")),
                  "test.yaml");
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  CountingStore store(*store_);
  for (const TooShort too_short : {TooShort::kRefuse, TooShort::kLengthen}) {
    EXPECT_EQ(check_queue(*queue, runner_, store, too_short).exit_code(), 0);
  }
  options_.auto_pairs = true;
  for (const char* time : {"new", "known or joined"}) {
    const Result<QueueOutcome> outcome = run_queue(*queue, runner_, store, options_, progress_);
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->exit_code(), 0) << time;
    EXPECT_EQ(outcome->experiments[2].verdict(), Verdict::kInconclusive) << time;
  }
  EXPECT_EQ(store.reads(), 0);
}

}  // namespace
}  // namespace reckon::experiment
