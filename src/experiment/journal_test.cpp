#include "experiment/journal.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiment/journal_line.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

JournalPair sample_pair(int64_t index, const std::string& round = "rd-one") {
  JournalPair pair;
  pair.round = {round, 1, "2026-09-14T08:30:00Z", ~uint64_t{0}};
  pair.process = 2;
  pair.index = index;
  pair.arm_first = true;
  pair.base = 0.1 + static_cast<double>(index);
  pair.arm = 1e300;
  pair.seconds = 0.25;
  pair.base_peak_bytes = uint64_t{1} << 63;
  pair.base_rows = {{"decode", "matmul", "1x8", "v1", "p", "h"}};
  pair.tokens = {5, -6};
  pair.environment["commit"] = "abc";
  return pair;
}

class JournalTest : public testing::Test {
 protected:
  std::unique_ptr<Journal> open() {
    Result<std::unique_ptr<Journal>> journal = Journal::open(folder_ / "", "key", "experiment 'x'");
    EXPECT_TRUE(journal.ok()) << (journal.ok() ? "" : journal.error().message);
    return journal.ok() ? std::move(journal).value() : nullptr;
  }
  void write_pairs(int count) {
    const auto journal = open();
    for (int i = 0; i < count; ++i) ASSERT_TRUE(journal->append(sample_pair(i)).ok());
  }
  std::vector<int64_t> indices(const Journal& journal) {
    std::vector<int64_t> result;
    for (const JournalPair& pair : journal.pairs()) result.push_back(pair.index);
    return result;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "key.jsonl";
  std::string aside_ = folder_ / "key.set-aside";
};

TEST_F(JournalTest, PairsComeBackAsTheyWere) {
  write_pairs(2);
  const auto journal = open();
  ASSERT_THAT(journal->pairs(), SizeIs(2));
  EXPECT_THAT(journal->warnings(), IsEmpty());
  const JournalPair& pair = journal->pairs()[1];
  const JournalPair expected = sample_pair(1);
  EXPECT_EQ(pair.round, expected.round);
  EXPECT_EQ(pair.process, 2);
  EXPECT_EQ(pair.base, expected.base);
  EXPECT_EQ(pair.arm, expected.arm);
  EXPECT_EQ(pair.base_peak_bytes, expected.base_peak_bytes);
  EXPECT_EQ(pair.base_rows, expected.base_rows);
  EXPECT_EQ(pair.tokens, expected.tokens);
  EXPECT_EQ(pair.environment, expected.environment);
  EXPECT_TRUE(pair.arm_first);
}

TEST_F(JournalTest, TornLastLineIsSetAside) {
  write_pairs(3);
  const std::string text = read_text(path_);
  const size_t last_line = text.rfind('\n', text.size() - 2) + 1;
  for (const size_t length : {last_line + 1, last_line + 40, text.size() - 2}) {
    write_text(path_, text.substr(0, length));
    std::filesystem::remove(aside_);
    auto journal = open();
    EXPECT_THAT(indices(*journal), ElementsAre(0, 1));
    ASSERT_THAT(journal->warnings(), SizeIs(1));
    EXPECT_THAT(journal->warnings()[0], HasSubstr("key.jsonl:3: set aside: "));
    EXPECT_EQ(read_text(aside_), text.substr(last_line, length - last_line) + "\n");
    EXPECT_EQ(read_text(path_), text.substr(0, last_line));
    EXPECT_TRUE(journal->append(sample_pair(2)).ok());
    EXPECT_EQ(read_text(path_), text) << "it goes on as if nothing had been";
  }
}

TEST_F(JournalTest, LineThatLacksOnlyItsEndCounts) {
  write_pairs(2);
  const std::string text = read_text(path_);
  write_text(path_, text.substr(0, text.size() - 1));
  EXPECT_THAT(indices(*open()), ElementsAre(0, 1));
  EXPECT_EQ(read_text(path_), text);
}

TEST_F(JournalTest, DamagedLinesAreSetAsideAndTheOthersKept) {
  write_pairs(3);
  const std::string text = read_text(path_);
  const size_t second = text.find('\n') + 1;
  for (const char c : {'\0', ' ', '9', '\xff', '"'}) {
    std::string damaged = text;
    damaged[text.find("0.25", second) + 2] = c;
    write_text(path_, damaged);
    const auto journal = open();
    EXPECT_THAT(indices(*journal), ElementsAre(0, 2));
    EXPECT_THAT(journal->warnings(), SizeIs(1));
  }
}

TEST_F(JournalTest, PairCountsOnce) {
  write_pairs(2);
  write_text(path_, read_text(path_) + read_text(path_));
  EXPECT_THAT(indices(*open()), ElementsAre(0, 1));
}

TEST_F(JournalTest, CommittedEventsComeBack) {
  ledger::IdeaBody idea;
  idea.text = "try";
  const Result<ledger::Event> event = ledger::make_first_event(
      ledger::EventType::kIdea, ledger::encode(idea), "tester", "2026-09-14T08:30:00Z");
  ASSERT_TRUE(event.ok());
  {
    const auto journal = open();
    ASSERT_TRUE(journal->append(sample_pair(0)).ok());
    ASSERT_TRUE(journal->commit(std::vector{*event}).ok());
  }
  {
    const auto journal = open();
    EXPECT_THAT(journal->committed(), ElementsAre(*event));
    EXPECT_THAT(journal->pairs(), SizeIs(1));
    ASSERT_TRUE(journal->clear().ok());
  }
  const auto journal = open();
  EXPECT_THAT(journal->committed(), IsEmpty());
  EXPECT_THAT(journal->pairs(), IsEmpty());
}

TEST_F(JournalTest, RoundsOfTheLedgerAreDropped) {
  {
    const auto journal = open();
    ASSERT_TRUE(journal->append(sample_pair(0, "rd-one")).ok());
    ASSERT_TRUE(journal->append(sample_pair(0, "rd-two")).ok());
    ASSERT_TRUE(journal->drop_rounds({"rd-one"}).ok());
    ASSERT_TRUE(journal->append(sample_pair(1, "rd-two")).ok());
  }
  const auto journal = open();
  ASSERT_THAT(journal->pairs(), SizeIs(2));
  EXPECT_EQ(journal->pairs()[0].round.id, "rd-two");
}

TEST_F(JournalTest, AnotherProcessIsToldWhoHoldsIt) {
  const auto journal = open();
  const pid_t other = ::fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    const auto second = Journal::open(folder_ / "", "key", "experiment 'x'");
    const std::string expected =
        fmt::format("experiment 'x' is being measured by process {}", ::getppid());
    ::_exit(!second.ok() && second.error().message.find(expected) == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(JournalTest, FolderIsIgnoredByGit) {
  const Result<std::string> folder =
      journal_folder(*ledger::open_store(folder_ / "ledger").value());
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(*folder, folder_ / "ledger/journal");
  EXPECT_EQ(read_text(*folder + "/.gitignore"), "*\n");
  write_text(folder_ / "file", "");
  EXPECT_FALSE(journal_folder(*ledger::open_store(folder_ / "file/ledger").value()).ok());
}

TEST(JournalLine, WhatFewPairsHaveSurvives) {
  JournalPair pair = sample_pair(3);
  pair.arm_tokens = {5, 7};
  pair.margin = 0.25;
  pair.disturbed = "other processes took 43% of the processors";
  pair.paused_seconds = 12;
  pair.base_control = 3;
  pair.arm_control = 4;
  const Result<JournalLine> line = parse_journal_line(journal_line(pair));
  ASSERT_TRUE(line.ok()) << line.error().message;
  EXPECT_EQ(line->pair->arm_tokens, pair.arm_tokens);
  EXPECT_EQ(line->pair->margin, 0.25);
  EXPECT_EQ(line->pair->disturbed, pair.disturbed);
  EXPECT_EQ(line->pair->paused_seconds, 12);
  EXPECT_EQ(line->pair->base_control, 3);
  EXPECT_EQ(line->pair->arm_control, 4);
  const Result<JournalLine> plain = parse_journal_line(journal_line(sample_pair(3)));
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->pair->margin || plain->pair->base_control || plain->pair->arm_control);
}

TEST(JournalLine, NothingUnsealedIsRead) {
  const std::string line = journal_line(sample_pair(3));
  ASSERT_TRUE(parse_journal_line(line).ok());
  EXPECT_FALSE(parse_journal_line("").ok());
  EXPECT_FALSE(parse_journal_line("{}").ok());
  EXPECT_FALSE(parse_journal_line("[]").ok());
  for (size_t i = 0; i < line.size(); ++i) {
    EXPECT_FALSE(parse_journal_line(line.substr(0, i)).ok());
  }
}

}  // namespace
}  // namespace reckon::experiment
