// What people say of an entry later, and what was reported elsewhere: is a repeat of its scope
// measured, what does the result say, and which entry gets the verdict?
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <thread>

#include "base/text.h"
#include "experiment/prepare.h"
#include "experiment/run.h"
#include "experiment/test_support.h"
#include "ledger/amend.h"

namespace reckon::experiment {
namespace {

using ledger::EntryStatus;
using ledger::Verdict;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class LifecycleTest : public LedgerTest {
 protected:
  using Amend = std::function<Result<ledger::Event>(ledger::Catalog&, const ledger::Signature&)>;

  void append(const ledger::Event& event) { ASSERT_TRUE(store_->append({&event, 1}).ok()); }
  void amend(const Amend& what) {
    const auto catalog = ledger::open_catalog(*store_);
    ASSERT_TRUE(catalog.ok());
    const Result<ledger::Event> event = what(**catalog, {options_.writer, utc_timestamp()});
    ASSERT_TRUE(event.ok()) << event.error().message;
    append(*event);
  }
  // In a second of its own: equal events of one second (a VOID, and the next one) are one event.
  void reopen(const std::string& id, const std::string& reason = "a new driver") {
    for (const std::string now = utc_timestamp(); utc_timestamp() == now;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    amend([&](auto& catalog, const auto& by) { return ledger::reopen(catalog, id, reason, by); });
  }

  Outcome measured_lost(const std::string& experiment) {
    Outcome outcome = run_one(experiment);
    EXPECT_EQ(outcome.verdict(), Verdict::kLost) << outcome.text;
    return outcome;
  }
  ledger::Entry entry(const std::string& id) { return *read().find(id); }
  static std::vector<std::string> round_ids(std::span<const ledger::MeasuredBody> rounds) {
    std::vector<std::string> ids;
    for (const ledger::MeasuredBody& measured : rounds) ids.push_back(measured.round.id);
    return ids;
  }

  const std::string slower_ = ab_experiment("slower", "variant=v2,speed=0.95");
};

TEST_F(LifecycleTest, OverturnedIsMeasuredAsANewEntry) {
  store_noise();
  const Outcome first = measured_lost(slower_);
  amend([&](auto& catalog, const auto& by) {
    return ledger::overturn(catalog, first.entry, "the clock was wrong", by);
  });
  const Outcome second = measured_lost(slower_);
  EXPECT_NE(second.entry, first.entry);
  EXPECT_THAT(second.record->rounds, SizeIs(2));
  EXPECT_THAT(second.notes, Contains(AllOf(HasSubstr("known: " + first.entry),
                                           HasSubstr("it was overturned: the clock was wrong"))));
  EXPECT_EQ(second.record->idea.force_reason, "") << "nothing had to be overridden";
  EXPECT_EQ(entry(first.entry).status, EntryStatus::kOverturned);
  EXPECT_THAT(entry(first.entry).rounds, SizeIs(2));
  EXPECT_THAT(refused(slower_).text, HasSubstr(second.entry));
}

TEST_F(LifecycleTest, ReopenedGetsItsNextVerdictFromNewRoundsAlone) {
  store_noise();
  const Outcome first = measured_lost(slower_);
  refused(slower_);
  reopen(first.entry);
  const size_t entries = read().entries.size();
  const Result<Queue> queue = parse_queue(queue_text(slower_), "test.yaml");
  const QueueCheck check = check_queue(*queue, runner_, *store_);
  EXPECT_EQ(check.experiments[0].kind, CheckedExperiment::Kind::kWouldRun);

  const Outcome second = measured_lost(slower_);
  EXPECT_EQ(second.entry, first.entry);
  EXPECT_EQ(read().entries.size(), entries);
  EXPECT_THAT(second.notes, Contains(AllOf(HasSubstr("joins: " + first.entry),
                                           HasSubstr("it was reopened: a new driver"))));
  const ledger::Entry& now = *second.record;
  EXPECT_EQ(now.status, EntryStatus::kOpen);
  ASSERT_THAT(now.rounds, SizeIs(4));
  EXPECT_EQ(now.verdict->rounds, round_ids(now.counting_rounds()));
  EXPECT_THAT(now.verdict->rounds, ElementsAre(now.rounds[2].round.id, now.rounds[3].round.id));
  EXPECT_THAT(now.verdict->numbers->arm_values, SizeIs(2));
  EXPECT_EQ(now.rounds[3].round.index, 3) << "numbered on";
  EXPECT_THAT(refused(slower_).text, Not(HasSubstr("reopened"))) << "it is known again";
}

TEST_F(LifecycleTest, ReopenedGetsItsNextVerdictWhateverItWas) {
  const std::string nothing = ab_experiment("nothing", "variant=v1,speed=2");
  const std::string open = ab_experiment("open", "variant=v2");
  const std::string broken = ab_experiment("broken", "variant=v3,diverge=1");
  for (const auto& [experiment, verdict] :
       {std::pair(nothing, Verdict::kVoid), std::pair(open, Verdict::kInconclusive),
        std::pair(broken, Verdict::kBroke)}) {
    const Outcome first = run_one(experiment);
    ASSERT_EQ(first.verdict(), verdict) << first.text;
    reopen(first.entry);
    const Outcome second = run_one(experiment);
    EXPECT_EQ(second.entry, first.entry) << verdict_name(verdict);
    EXPECT_EQ(second.verdict(), verdict) << second.text;
    EXPECT_EQ(second.record->status, EntryStatus::kOpen);
    EXPECT_EQ(second.record->verdict->rounds.size(), first.record->verdict->rounds.size())
        << "earlier rounds count no more";
  }
  const Outcome third = run_one(open);
  EXPECT_THAT(third.record->rounds, SizeIs(6));
  EXPECT_THAT(third.record->verdict->rounds, SizeIs(4)) << "the rounds since do count";
}

TEST_F(LifecycleTest, ReopenedWaitsThroughChangedSourcesAndForcedRuns) {
  store_noise();
  const Outcome first = measured_lost(slower_);
  reopen(first.entry, "the tile was rewritten");
  options_.force_reason = "beside it";
  const Outcome forced = measured_lost(slower_);
  options_.force_reason.clear();
  EXPECT_NE(forced.entry, first.entry);
  EXPECT_EQ(entry(first.entry).status, EntryStatus::kReopened);
  EXPECT_THAT(refused(slower_).text, HasSubstr(forced.entry)) << "the forced one answers";
  amend([&](auto& catalog, const auto& by) {
    return ledger::supersede(catalog, first.entry, forced.entry, "it is newer", by);
  });
  EXPECT_EQ(entry(first.entry).status, EntryStatus::kReopened) << "no verdict came meanwhile";
  const Outcome second = run_one(slower_, 2, "tiny;source=s2");
  EXPECT_EQ(second.entry, first.entry) << second.text;
  EXPECT_EQ(second.verdict(), Verdict::kLost);
  EXPECT_EQ(second.record->verdict->sources.at("matmul.v2"), "s2");
}

TEST_F(LifecycleTest, ReopenedIsMeasuredByAnInterruptedRunToo) {
  const std::string experiments =
      ab_experiment("first", "variant=v2") + ab_experiment("second", "variant=v3");
  const QueueOutcome stopped = run_until_the_second(experiments);
  reopen(stopped.experiments[0].entry);
  const QueueOutcome finished = run(queue_text(experiments, 4));
  EXPECT_EQ(finished.experiments[0].entry, stopped.experiments[0].entry);
  EXPECT_THAT(finished.experiments[0].record->rounds, SizeIs(4));
  EXPECT_THAT(finished.experiments[0].record->verdict->rounds, SizeIs(2));
}

TEST_F(LifecycleTest, SupersededStillRefusesAndNamesItsSuccessor) {
  store_noise();
  const Outcome first = measured_lost(slower_);
  const Outcome other = measured_lost(ab_experiment("other", "variant=v3,speed=0.9"));
  amend([&](auto& catalog, const auto& by) {
    return ledger::supersede(catalog, first.entry, other.entry, "measured at all sizes", by);
  });
  const Outcome second = refused(slower_);
  EXPECT_THAT(second.text, AllOf(HasSubstr(first.entry), HasSubstr("LOST -5.0%"),
                                 HasSubstr("superseded by " + other.entry)));
  EXPECT_EQ(second.known_verdict, Verdict::kLost);
  EXPECT_THAT(entry(first.entry).rounds, SizeIs(2));
}

TEST_F(LifecycleTest, AConditionThatHoldsNowIsOfferedAndMeasured) {
  store_noise();
  const Outcome first = run_one(slower_, 2, "tiny;kernel=6.9.1");
  ASSERT_EQ(first.verdict(), Verdict::kLost);
  ledger::NoteBody note;
  note.revisit_when = {"kernel_version >= 6.10"};
  amend([&](auto& catalog, const auto& by) {
    return ledger::add_note(catalog, first.entry, note, by);
  });
  EXPECT_THAT(refused(slower_, "tiny;kernel=6.9.12").text, HasSubstr(first.entry));
  const Outcome second = run_one(slower_, 2, "tiny;kernel=6.10.2");
  ASSERT_EQ(second.verdict(), Verdict::kLost) << second.text;
  EXPECT_NE(second.entry, first.entry);
  EXPECT_THAT(second.record->rounds, SizeIs(2));
  EXPECT_EQ(second.record->verdict->environment.kernel, "Test 6.10.2");
  EXPECT_THAT(second.notes,
              testing::IsSupersetOf({AllOf(HasSubstr("known: " + first.entry),
                                           HasSubstr("a condition to revisit it holds now")),
                                     AllOf(HasSubstr("offer: " + first.entry),
                                           HasSubstr("kernel_version >= 6.10 holds now"))}));
  EXPECT_THAT(refused(slower_, "tiny;kernel=6.10.2").text, HasSubstr(second.entry))
      << "it is known under the new condition as well";
}

TEST_F(LifecycleTest, AnImportedComparisonNeverRefuses) {
  store_noise();
  const Result<Queue> queue = parse_queue(queue_text(slower_), "test.yaml");
  const Result<Prepared> prepared = prepare("test.yaml", queue->experiments[0], runner_);
  ASSERT_TRUE(prepared.ok());
  ledger::ImportedBody body;
  body.source = "a published table";
  body.idea.scope = prepared->scope;
  body.result.emplace();
  body.result->verdict = Verdict::kLost;
  const ledger::Event imported =
      ledger::make_first_event(ledger::EventType::kImported, ledger::encode(body), "tester",
                               utc_timestamp())
          .value();
  append(imported);
  const Outcome outcome = measured_lost(slower_);
  EXPECT_NE(outcome.entry, imported.entry);
  EXPECT_FALSE(outcome.record->imported);
  EXPECT_THAT(outcome.record->rounds, SizeIs(2));
  EXPECT_THAT(outcome.notes, Contains(AllOf(HasSubstr("known: " + imported.entry),
                                            HasSubstr("reported elsewhere, not measured here"))));
  EXPECT_THAT(entry(imported.entry).rounds, testing::IsEmpty());
  EXPECT_THAT(refused(slower_).text, HasSubstr(outcome.entry));
}

}  // namespace
}  // namespace reckon::experiment
