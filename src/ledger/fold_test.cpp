#include "ledger/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using test::at;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FoldTest : public testing::Test {
 protected:
  const Event idea_ = test::idea(test::expert_tile_scope());
  const std::string id_ = idea_.entry;

  static Entry only_entry(const std::vector<Event>& events) {
    Ledger ledger = fold(events);
    EXPECT_THAT(ledger.warnings, IsEmpty());
    EXPECT_EQ(ledger.entries.size(), 1U);
    return ledger.entries.front();
  }
  static VerdictBody without_mechanism(Verdict verdict) {
    VerdictBody body = test::lost();
    body.verdict = verdict;
    body.mechanism = body.lever = "";
    return body;
  }
};

TEST_F(FoldTest, AnEntryGrowsFromItsEvents) {
  const Entry entry = only_entry({idea_, test::measured(id_, "r1", -0.037),
                                  test::measured(id_, "r2", -0.041, at(2)),
                                  test::verdict(id_, test::lost(), at(3))});
  EXPECT_EQ(entry.id, id_);
  EXPECT_EQ(entry.created, at(0));
  EXPECT_EQ(entry.updated, at(3));
  EXPECT_EQ(entry.writer, "ann");
  EXPECT_EQ(entry.idea.scope, test::expert_tile_scope());
  ASSERT_EQ(entry.rounds.size(), 2U);
  EXPECT_EQ(entry.rounds[1].round.pairs[0].arm, 97.0);
  ASSERT_TRUE(entry.verdict.has_value());
  EXPECT_EQ(entry.verdict->verdict, Verdict::kLost);
  EXPECT_EQ(entry.verdict_time, at(3));
  EXPECT_EQ(entry.status, EntryStatus::kOpen);
  EXPECT_THAT(entry.unfinished_because(), IsEmpty());
}

TEST_F(FoldTest, ARoundCountsOnce) {
  const Event round = test::measured(id_, "r1", -0.037);
  Event again = round;  // the same round, appended by another process
  again.writer = "bob";
  again.time = at(9);
  EXPECT_EQ(only_entry({idea_, round, round, again}).rounds.size(), 1U);
}

TEST_F(FoldTest, ARoundIdWithOtherContentIsLeftOutLoudly) {
  const std::vector<Event> events = {idea_, test::measured(id_, "r1", -0.037),
                                     test::measured(id_, "r1", +0.2, at(2))};
  const Ledger ledger = fold(events);
  EXPECT_EQ(ledger.entries[0].rounds.size(), 1U);
  EXPECT_EQ(ledger.entries[0].rounds[0].round.median_log, -0.037);
  EXPECT_THAT(ledger.warnings, ElementsAre(HasSubstr("round r1 is already counted")));
}

TEST_F(FoldTest, ARoundBelongsToOneEntry) {
  const Event other = test::idea(test::expert_tile_scope(), "bob");
  const Ledger ledger = fold(std::vector<Event>{idea_, other, test::measured(id_, "r1", -0.037),
                                                test::measured(other.entry, "r1", -0.037)});
  EXPECT_EQ(ledger.find(id_)->rounds.size(), 1U);
  EXPECT_EQ(ledger.find(other.entry)->rounds.size(), 0U);
  EXPECT_THAT(ledger.warnings, ElementsAre(HasSubstr("already counted in " + id_)));
}

TEST_F(FoldTest, UnfinishedWithoutMechanismOrFromADirtyTree) {
  EXPECT_THAT(only_entry({idea_}).unfinished_because(), ElementsAre("no verdict"));
  VerdictBody body = without_mechanism(Verdict::kLost);
  EXPECT_THAT(only_entry({idea_, test::verdict(id_, body)}).unfinished_because(),
              ElementsAre("no mechanism"));
  body = test::lost();
  body.environment.dirty = true;
  EXPECT_THAT(only_entry({idea_, test::verdict(id_, body)}).unfinished_because(),
              ElementsAre("measured from a dirty tree"));
}

TEST_F(FoldTest, NotesBringAVerdictUpToDate) {
  NoteBody note;
  note.text = "profiled";
  note.mechanism = "occupancy";
  note.lever = "bigger chunks";
  note.revisit_when = {"chunk >= 4096"};
  const std::vector<Event> events = {
      idea_, test::verdict(id_, without_mechanism(Verdict::kLost), at(2)),
      test::note(id_, note, at(3)), test::remark(id_, "nothing new", at(4))};
  const Entry entry = only_entry(events);
  EXPECT_EQ(entry.verdict->mechanism, "occupancy");
  EXPECT_EQ(entry.verdict->lever, "bigger chunks");
  EXPECT_THAT(entry.verdict->revisit_when, ElementsAre("chunk >= 4096"));
  EXPECT_THAT(entry.unfinished_because(), IsEmpty());
  ASSERT_EQ(entry.notes.size(), 2U);
  EXPECT_EQ(entry.notes[1].text, "nothing new");
}

TEST_F(FoldTest, AMechanismOutlivesTheSameVerdictOnly) {
  NoteBody note;
  note.mechanism = "occupancy";
  const std::vector<Event> events = {
      idea_, test::verdict(id_, without_mechanism(Verdict::kInconclusive), at(2)),
      test::note(id_, note, at(3)),
      test::verdict(id_, without_mechanism(Verdict::kInconclusive), at(4))};
  EXPECT_EQ(only_entry(events).verdict->mechanism, "occupancy");
  std::vector<Event> won = events;
  won.push_back(test::verdict(id_, without_mechanism(Verdict::kWon), at(5)));
  EXPECT_EQ(only_entry(won).verdict->mechanism, "");
}

TEST_F(FoldTest, StatusFollowsTheEvents) {
  std::vector<Event> events = {idea_, test::verdict(id_, test::lost(), at(2))};
  events.push_back(test::status(EventType::kSuperseded, id_, {"faster", "rk-qrstuvwxyz23"}, at(3)));
  EXPECT_EQ(only_entry(events).status, EntryStatus::kSuperseded);
  EXPECT_EQ(only_entry(events).superseded_by, "rk-qrstuvwxyz23");
  events.push_back(test::status(EventType::kOverturned, id_, {"wrong clock", ""}, at(4)));
  EXPECT_EQ(only_entry(events).status, EntryStatus::kOverturned);
  EXPECT_EQ(only_entry(events).status_reason, "wrong clock");
  events.push_back(test::verdict(id_, test::lost(), at(5)));
  EXPECT_EQ(only_entry(events).status, EntryStatus::kOverturned);
  events.push_back(test::status(EventType::kReopened, id_, {"clock mended", ""}, at(6)));
  EXPECT_EQ(only_entry(events).status, EntryStatus::kReopened);
  events.push_back(test::verdict(id_, test::lost(), at(7)));
  EXPECT_EQ(only_entry(events).status, EntryStatus::kOpen);
}

TEST_F(FoldTest, ReopeningSetsEarlierRoundsApart) {
  std::vector<Event> events = {idea_, test::measured(id_, "r1", -0.04, at(1)),
                               test::verdict(id_, test::lost(), at(2)),
                               test::status(EventType::kReopened, id_, {"why", ""}, at(3))};
  EXPECT_TRUE(only_entry(events).counting_rounds().empty());
  events.push_back(test::status(EventType::kSuperseded, id_, {"x", "rk-qrstuvwxyz23"}, at(4)));
  EXPECT_EQ(only_entry(events).status, EntryStatus::kReopened) << "until its next verdict";
  EXPECT_EQ(only_entry(events).status_reason, "why");
  events.push_back(test::measured(id_, "r2", -0.05, at(5)));
  VerdictBody next = test::lost();
  next.rounds = {"r2"};
  events.push_back(test::verdict(id_, next, at(6)));
  const Entry entry = only_entry(events);
  EXPECT_EQ(entry.status, EntryStatus::kOpen);
  EXPECT_EQ(entry.superseded_by, "rk-qrstuvwxyz23");
  ASSERT_EQ(entry.counting_rounds().size(), 1U);
  EXPECT_EQ(entry.counting_rounds()[0].round.id, "r2");
  EXPECT_TRUE(entry.rests_on(entry.rounds[1].round));
  EXPECT_FALSE(entry.rests_on(entry.rounds[0].round));
}

TEST_F(FoldTest, EventsMayPrecedeTheirEntry) {
  const Entry entry = only_entry({test::verdict(id_, test::lost()), idea_});
  EXPECT_TRUE(entry.verdict.has_value());
}

TEST_F(FoldTest, UnusableEventsAreNamedAndTheRestStands) {
  Event broken = test::verdict(id_, test::lost());
  broken.body["verdict"] = 7;
  const Ledger ledger = fold(std::vector<Event>{
      idea_, broken, test::verdict("rk-abcdefghijkl", test::lost()), test::measured(id_, "r1", 0)});
  EXPECT_EQ(ledger.entries.size(), 1U);
  EXPECT_FALSE(ledger.entries[0].verdict.has_value());
  EXPECT_EQ(ledger.entries[0].rounds.size(), 1U);
  EXPECT_THAT(ledger.warnings, ElementsAre(HasSubstr("verdict is a number"),
                                           HasSubstr("no event creates this entry")));
}

TEST_F(FoldTest, ImportedEntriesAreReportedNeverMeasured) {
  ImportedBody body;
  body.source = "a published table";
  body.idea.scope.switch_key = "moe.expert_tile";
  body.result = test::lost();
  body.figures = {{"tok/s", {949.4, 951.9}}};
  const Event imported = make_first_event(EventType::kImported, encode(body), "ann", at(0)).value();
  const Ledger ledger = fold(std::vector<Event>{imported, test::measured(imported.entry, "r1", 0),
                                                test::verdict(imported.entry, test::lost())});
  const Entry& entry = ledger.entries.at(0);
  EXPECT_TRUE(entry.imported);
  EXPECT_EQ(entry.import_source, "a published table");
  EXPECT_EQ(entry.figures, body.figures);
  EXPECT_EQ(entry.verdict->verdict, Verdict::kLost);
  EXPECT_TRUE(entry.rounds.empty());
  EXPECT_EQ(ledger.warnings.size(), 2U);
}

TEST_F(FoldTest, FloorRoundsAreFoundByDeviceMetricAndClass) {
  const Event floor = test::idea(test::floor_scope());
  Scope elsewhere = test::floor_scope();
  elsewhere.device.units = 114;
  const Event other = test::idea(elsewhere);
  Scope later = test::floor_scope();
  later.model_hash = "other weights of the same shape";
  const Event same_class = test::idea(later, "ann", at(1));
  const std::vector<Event> events = {floor,
                                     other,
                                     same_class,
                                     idea_,
                                     test::measured(floor.entry, "f1", 0.01),
                                     test::measured(floor.entry, "f2", -0.02),
                                     test::measured(other.entry, "f3", 0.5),
                                     test::measured(same_class.entry, "f4", 0.03),
                                     test::measured(id_, "r1", 0.7),
                                     test::measured(floor.entry, "f1", 0.01)};
  const Ledger ledger = fold(events);
  EXPECT_THAT(ledger.warnings, IsEmpty());
  std::vector<std::string> rounds;
  for (const Entry& entry : entries_of_class(ledger, test::expert_tile_scope())) {
    if (entry.idea.kind != EntryKind::kFloor) continue;
    for (const MeasuredBody& body : entry.rounds) rounds.push_back(body.round.id);
  }
  EXPECT_THAT(rounds, ElementsAre("f1", "f2", "f4"));
  EXPECT_THAT(ledger.find(floor.entry)->unfinished_because(), IsEmpty());
}

TEST_F(FoldTest, IdenticalArmsGetNoVerdict) {
  const Event floor = test::idea(test::floor_scope());
  const Ledger ledger = fold(std::vector<Event>{floor, test::verdict(floor.entry, test::lost())});
  EXPECT_FALSE(ledger.entries[0].verdict.has_value());
  EXPECT_THAT(ledger.warnings, ElementsAre(HasSubstr("identical arms get no verdict")));
}

TEST_F(FoldTest, ResolvesPrefixes) {
  const Ledger ledger = fold(std::vector<Event>{idea_});
  EXPECT_EQ(ledger.resolve(id_.substr(0, 7)).value()->id, id_);
  EXPECT_EQ(ledger.resolve("zzzz").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(ledger.find("rk-abcdefghijkl"), nullptr);
}

}  // namespace
}  // namespace reckon::ledger
