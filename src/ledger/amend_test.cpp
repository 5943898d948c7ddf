#include "ledger/amend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger/chain.h"
#include "ledger/open.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using test::at;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Three entries with verdicts of their own, and one without.
class AmendTest : public testing::Test {
 protected:
  AmendTest() {
    for (int i = 0; i < 4; ++i) {
      Scope scope = test::expert_tile_scope();
      scope.chunk = 128 << i;
      const Event idea = test::idea(scope, "ann", at(i));
      ids_.push_back(idea.entry);
      append(idea);
      if (i < 3) append(test::verdict(idea.entry, test::lost(), at(i, 15)));
    }
  }
  void append(const Event& event) { EXPECT_TRUE(store_->append({&event, 1}).ok()); }
  std::unique_ptr<Catalog> catalog() const { return open_catalog(*store_).value(); }
  Entry entry(int i) const { return catalog()->entry(ids_[static_cast<size_t>(i)]).value(); }
  const std::string& id(int i) const { return ids_[static_cast<size_t>(i)]; }
  Consultation ask(int i) const {
    Query query;
    query.scope = entry(i).idea.scope;
    return catalog()->consult(query).value();
  }
  void expect_refused(const Result<Event>& event, const std::string& why) const {
    ASSERT_FALSE(event.ok());
    EXPECT_EQ(event.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(event.error().message, HasSubstr(why));
  }

  const test::TemporaryFolder folder_;
  const std::unique_ptr<Store> store_ = open_store(folder_.path().string()).value();
  std::vector<std::string> ids_;
  const Signature later_{"bob", at(30, 20)};
};

TEST_F(AmendTest, AnOverturnedEntryBlocksNoLonger) {
  ASSERT_TRUE(ask(0).block);
  append(overturn(*catalog(), id(0).substr(3), "the clock was wrong", later_).value());
  EXPECT_EQ(entry(0).status, EntryStatus::kOverturned);
  EXPECT_FALSE(ask(0).block);
  EXPECT_THAT(ask(0).allowed.at(0).text, HasSubstr("it was overturned: the clock was wrong"));
  expect_refused(overturn(*catalog(), id(0), "again", later_), "is overturned already: the clock");
}

TEST_F(AmendTest, AReopenedEntryWaitsForItsNextVerdict) {
  append(reopen(*catalog(), id(1), "a new compiler", later_).value());
  EXPECT_EQ(entry(1).status, EntryStatus::kReopened);
  EXPECT_THAT(ask(1).join->text, HasSubstr("it was reopened: a new compiler"));
  expect_refused(reopen(*catalog(), id(1), "again", later_), "is reopened already");
  expect_refused(reopen(*catalog(), id(3), "why not", later_), "has no verdict yet");
  append(test::verdict(id(1), test::lost(), at(0, 21)));
  EXPECT_TRUE(ask(1).block);
  append(overturn(*catalog(), id(0), "wrong", later_).value());
  append(reopen(*catalog(), id(0), "right after all", {"bob", at(31, 20)}).value());
  EXPECT_EQ(entry(0).status, EntryStatus::kReopened);
}

TEST_F(AmendTest, EachChangeIsKeptWithItsReason) {
  append(overturn(*catalog(), id(0), "wrong", later_).value());
  append(reopen(*catalog(), id(0), "right after all", {"cy", at(31, 20)}).value());
  const std::vector<StatusChange> history = entry(0).history;
  ASSERT_EQ(history.size(), 2U);
  EXPECT_EQ(history[0].status, EntryStatus::kOverturned);
  EXPECT_EQ(history[0].reason, "wrong");
  EXPECT_EQ(history[1].status, EntryStatus::kReopened);
  EXPECT_EQ(history[1].writer, "cy");
}

TEST_F(AmendTest, AReasonIsRequired) {
  for (const char* reason : {"", "  \n"}) {
    expect_refused(overturn(*catalog(), id(0), reason, later_), "the reason is empty");
    expect_refused(reopen(*catalog(), id(0), reason, later_), "the reason is empty");
    expect_refused(supersede(*catalog(), id(0), id(1), reason, later_), "the reason is empty");
  }
  expect_refused(overturn(*catalog(), "rk-2222", "x", later_), "no entry 'rk-2222'");
}

TEST_F(AmendTest, SupersessionsMakeAChain) {
  append(supersede(*catalog(), id(0), id(1), "larger chunks", later_).value());
  append(supersede(*catalog(), id(1), id(2), "larger still", {"bob", at(31, 20)}).value());
  EXPECT_EQ(entry(0).superseded_by, id(1));
  EXPECT_THAT(ask(0).block->text, HasSubstr("superseded by " + id(1)));
  const Chains chains(catalog()->list().value());
  const auto ids = [](const std::vector<Summary>& entries) {
    std::vector<std::string> found;
    for (const Summary& entry : entries) found.push_back(entry.id);
    return found;
  };
  EXPECT_THAT(ids(chains.of(id(0)).superseded_by), ElementsAre(id(1), id(2)));
  EXPECT_THAT(ids(chains.of(id(2)).supersedes), ElementsAre(id(0), id(1)));
  EXPECT_THAT(chains.of(id(3)).supersedes, IsEmpty());

  expect_refused(supersede(*catalog(), id(2), id(0), "x", later_), "is itself superseded by");
  expect_refused(supersede(*catalog(), id(2), id(2), "x", later_), "cannot supersede itself");
  expect_refused(supersede(*catalog(), id(0), id(1), "x", later_), "already");
  expect_refused(supersede(*catalog(), id(0), "rk-2222", "x", later_), "no entry");
}

// Two clones may each supersede one entry by the other; merged, that is a ring.
TEST_F(AmendTest, ARingOfMergedLedgersEnds) {
  StatusBody body;
  for (int i = 0; i < 2; ++i) {
    body.by = id(1 - i);
    append(test::status(EventType::kSuperseded, id(i), body));
  }
  const Chains chains(catalog()->list().value());
  EXPECT_EQ(chains.of(id(0)).superseded_by.size(), 1U);
  EXPECT_EQ(chains.of(id(0)).supersedes.size(), 1U);
}

TEST_F(AmendTest, NotesAddWhatIsLearntLater) {
  NoteBody note;
  note.mechanism = "bound by weight traffic";
  note.revisit_when = {"chunk >= 4096"};
  note.lever = "tokens a chunk";
  note.lever_entry = id(2).substr(0, 8);
  append(add_note(*catalog(), id(0), note, later_).value());
  EXPECT_EQ(entry(0).verdict->mechanism, "bound by weight traffic");
  EXPECT_EQ(entry(0).verdict->lever_entry, id(2));
  EXPECT_EQ(Chains(catalog()->list().value()).of(id(2)).lever_of.at(0).id, id(0));

  expect_refused(add_note(*catalog(), id(3), note, later_), "has no verdict yet");
  expect_refused(add_note(*catalog(), id(0), {}, later_), "the note is empty");
  note.lever_entry = id(0);
  expect_refused(add_note(*catalog(), id(0), note, later_), "its own lever");
  note.revisit_when = {"when the moon is full"};
  expect_refused(add_note(*catalog(), id(0), note, later_), "is not a condition");
  NoteBody remark;
  remark.text = "seen again";
  append(add_note(*catalog(), id(3), remark, later_).value());
  EXPECT_EQ(entry(3).notes.at(0).text, "seen again");
}

}  // namespace
}  // namespace reckon::ledger
