// Killed, stopped and crowded runs lose no finished pair and count none twice.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "experiment/run.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kPairs = 8;
constexpr int kKills = 50;

class ResumeTest : public LedgerTest {
 protected:
  // This executable running the queue at `queue_path_`, as another process would.
  pid_t start_queue(const std::string& ledger, const std::string& errors) {
    const std::string self = program_path();
    const pid_t pid = ::fork();
    if (pid == 0) {
      const int fd = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      ::dup2(fd, 2);
      ::execl(self.c_str(), self.c_str(), kRunQueue, ledger.c_str(), queue_path_.c_str(),
              log_path_.c_str(), nullptr);
      ::_exit(127);
    }
    return pid;
  }

  // Every pair that was reported to be on disk is in the ledger once, and nothing else is.
  void expect_exact(const std::string& ledger_path) {
    std::map<std::string, std::set<int>> logged;  // round -> counted pairs
    std::istringstream log(read_text(log_path_));
    std::string experiment;
    std::string round;
    std::string what;
    int pair = 0;
    while (log >> experiment >> round >> what >> pair) {
      if (what == "pair") {
        EXPECT_TRUE(logged[round].insert(pair).second) << round << " " << pair << " twice";
      }
    }
    const auto store = ledger::open_store(ledger_path);
    ASSERT_TRUE(store.ok());
    const Result<ledger::VerifyReport> verified = (*store)->verify();
    ASSERT_TRUE(verified.ok());
    EXPECT_THAT(verified->errors, IsEmpty());
    const ledger::Ledger ledger = ledger::fold((*store)->read()->events);
    EXPECT_THAT(ledger.warnings, IsEmpty());
    std::set<std::string> recorded;
    for (const ledger::Entry& entry : ledger.entries) {
      for (const ledger::MeasuredBody& measured : entry.rounds) {
        EXPECT_TRUE(recorded.insert(measured.round.id).second);
        const auto counted = std::count_if(measured.round.pairs.begin(), measured.round.pairs.end(),
                                           [](const auto& sample) { return !sample.warmup; });
        EXPECT_EQ(counted, kPairs) << measured.round.id;
        // A kill between the journal and the log can hide a pair from the log, never add one.
        EXPECT_LE(logged[measured.round.id].size(), static_cast<size_t>(kPairs));
      }
    }
    for (const auto& [id, pairs] : logged) {
      EXPECT_TRUE(recorded.contains(id)) << id << " was on disk and is lost";
    }
    ASSERT_THAT(ledger.entries, SizeIs(3));
    EXPECT_THAT(ledger.entries[0].rounds, SizeIs(25));
    EXPECT_THAT(ledger.entries[1].rounds, SizeIs(4));
    EXPECT_THAT(ledger.entries[2].rounds, IsEmpty());
    EXPECT_EQ(ledger.entries[1].verdict->verdict, ledger::Verdict::kWon);
    EXPECT_EQ(ledger.entries[2].verdict->verdict, ledger::Verdict::kVoid);
  }

  // 5 A/A rounds on top of 20, a comparison of 4 rounds, and one that is VOID by its plan.
  void write_queue() {
    write_text(queue_path_, queue_text(aa_experiment("floor", 25) +
                                           ab_experiment("faster", "variant=v2,speed=1.05,sleep=1",
                                                         "    rounds: 4\n", "variant=v1,sleep=1") +
                                           ab_experiment("void", "variant=v1,speed=2"),
                                       kPairs));
  }

  const std::string queue_path_ = folder_ / "queue.yaml";
  const std::string log_path_ = folder_ / "pairs.log";
};

TEST_F(ResumeTest, FiftyKillsLoseNothingAndCountNothingTwice) {
  write_queue();
  ASSERT_EQ(run_one(aa_experiment("floor", 20), kPairs).kind, OutcomeKind::kFloor);
  std::mt19937 random(20260914);
  int kills = 0;
  int ledgers = 0;
  bool complete = false;
  while (kills < kKills || !complete) {
    if (complete || ledgers == 0) {
      std::filesystem::remove(log_path_);
      ++ledgers;
      std::filesystem::copy(folder_ / "ledger", folder_ / fmt::format("ledger{}", ledgers),
                            std::filesystem::copy_options::recursive);
      complete = false;
    }
    const std::string ledger = folder_ / fmt::format("ledger{}", ledgers);
    const pid_t pid = start_queue(ledger, folder_ / "errors");
    ASSERT_GT(pid, 0);
    if (kills < kKills) {
      const auto delay = std::uniform_int_distribution<int>(0, 250000)(random);
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
      ::kill(pid, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
      ++kills;
      continue;
    }
    // 0; or 3, where the kill before it came after the last record.
    ASSERT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3)
        << WEXITSTATUS(status) << " " << read_text(folder_ / "errors");
    complete = true;
    expect_exact(ledger);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_EQ(kills, kKills);
}

TEST_F(ResumeTest, BudgetStopsAtAPairsEndAndALaterRunGoesOn) {
  const std::string experiments = ab_experiment("slow", "variant=v2,speed=1.5") +
                                  ab_experiment("later", "variant=v3,speed=1.5");
  double clock = 0;
  options_.now_seconds = [&clock] { return clock += 1; };
  options_.budget_seconds = 20;
  std::set<std::string> entries;
  int stops = 0;
  while (true) {
    const QueueOutcome outcome = run(queue_text(experiments, 4));
    ASSERT_THAT(outcome.experiments, SizeIs(2));
    EXPECT_NE(outcome.exit_code(), 1);
    const Outcome& last = outcome.experiments[1];
    if (last.kind != OutcomeKind::kPaused) break;
    ASSERT_LT(++stops, 20);
    if (outcome.experiments[0].kind == OutcomeKind::kPaused) {
      EXPECT_THAT(outcome.experiments[0].text, HasSubstr("finished pairs wait in the journal"));
      EXPECT_EQ(outcome.exit_code(), 0);
      EXPECT_THAT(last.text, HasSubstr("not started"));
    }
  }
  EXPECT_GE(stops, 2);
  const ledger::Ledger ledger = read();
  ASSERT_THAT(ledger.entries, SizeIs(2));
  int64_t processes = 0;
  for (const ledger::Entry& entry : ledger.entries) {
    EXPECT_TRUE(entry.verdict.has_value());
    ASSERT_THAT(entry.rounds, SizeIs(2));
    for (const ledger::MeasuredBody& measured : entry.rounds) {
      std::set<int64_t> seen;
      int64_t warmups = 0;
      size_t counted = 0;
      for (const ledger::PairSample& pair : measured.round.pairs) {
        warmups += pair.warmup ? 1 : 0;
        counted += pair.warmup ? 0 : 1;
      }
      EXPECT_EQ(counted, 4u);
      const auto of_round = measured.round.extra["processes"].get<int64_t>();
      EXPECT_EQ(warmups, of_round) << "each process warms up once";
      processes += of_round;
      const auto arm_first =
          std::count_if(measured.round.pairs.begin(), measured.round.pairs.end(),
                        [](const auto& pair) { return !pair.warmup && pair.arm_first; });
      EXPECT_EQ(arm_first, 2) << "the order stays balanced over processes";
    }
  }
  EXPECT_GT(processes, 4) << "rounds went on in further processes";
}

TEST_F(ResumeTest, RequestStopsAtAPairsEnd) {
  int asked = 0;
  options_.stop_requested = [&asked] { return ++asked > 4; };
  const Outcome stopped = run_one(ab_experiment("slow", "variant=v2,speed=1.5"), 8);
  EXPECT_EQ(stopped.kind, OutcomeKind::kPaused);
  EXPECT_THAT(stopped.text, HasSubstr("interrupted"));
  options_.stop_requested = nullptr;
  const Outcome finished = run_one(ab_experiment("slow", "variant=v2,speed=1.5"), 8);
  EXPECT_EQ(finished.kind, OutcomeKind::kVerdict);
  EXPECT_EQ(finished.record->rounds[0].round.extra["processes"], 2);
}

TEST_F(ResumeTest, PairsOfOtherSourcesDoNotMix) {
  const std::string experiment = ab_experiment("slow", "variant=v2,speed=1.5");
  double clock = 0;
  options_.now_seconds = [&clock] { return clock += 1; };
  options_.budget_seconds = 9;
  ASSERT_EQ(run_one(experiment, 8).kind, OutcomeKind::kPaused);
  options_.budget_seconds.reset();
  const Outcome other = run_one(experiment, 8, "tiny;source=s2");
  ASSERT_EQ(other.kind, OutcomeKind::kVerdict);
  EXPECT_EQ(other.record->rounds[0].round.extra["processes"], 1) << "it began afresh";
  const Outcome first = run_one(experiment, 8);
  ASSERT_EQ(first.kind, OutcomeKind::kVerdict) << first.text;
  EXPECT_EQ(first.record->rounds[0].round.extra["processes"], 2) << "it went on";
}

TEST_F(ResumeTest, PairsOfRecordedRoundsDoNotCountAgain) {
  // Pairs whose rounds are in the ledger, without the line that says so.
  const std::string experiment = ab_experiment("faster", "variant=v2,speed=1.5");
  const std::string folder = folder_ / "ledger/journal";
  class KeepJournal : public Progress {
   public:
    explicit KeepJournal(std::string source) : source_(std::move(source)) {}
    void on_pair(const PairProgress&) override {
      for (const auto& file : std::filesystem::directory_iterator(source_)) {
        if (file.path().extension() == ".jsonl") {
          path_ = file.path().string();
          text_ = read_text(path_);
        }
      }
    }
    std::string source_;
    std::string path_;
    std::string text_;
  } keep(folder);
  const Result<Queue> queue = parse_queue(queue_text(experiment), "test.yaml");
  const Result<QueueOutcome> first = run_queue(*queue, runner_, *store_, options_, keep);
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->experiments[0].kind, OutcomeKind::kVerdict);
  EXPECT_FALSE(std::filesystem::exists(keep.path_)) << "recorded pairs are cleared";
  write_text(keep.path_, keep.text_);
  const std::string entry = first->experiments[0].entry;
  const Outcome second = run_one(experiment);
  ASSERT_EQ(second.kind, OutcomeKind::kVerdict) << "INCONCLUSIVE: new rounds join";
  EXPECT_EQ(second.entry, entry);
  ASSERT_THAT(second.record->rounds, SizeIs(4)) << "the old pairs did not count again";
}

// Fails before or after it has really appended, as a kill at that moment would.
class FailingStore : public ledger::Store {
 public:
  enum class When { kBefore, kAfter };
  FailingStore(ledger::Store& store, When when) : store_(store), when_(when) {}

  Result<ledger::AppendReport> append(std::span<const ledger::Event> events) override {
    if (when_ == When::kAfter) TRY(store_.append(events));
    return failed("the disk is full");
  }
  Result<ledger::ReadReport> read() const override { return store_.read(); }
  Result<ledger::VerifyReport> verify() const override { return store_.verify(); }
  const std::string& location() const override { return store_.location(); }
  Result<std::filesystem::path> local_folder() const override { return store_.local_folder(); }

 private:
  ledger::Store& store_;
  When when_;
};

TEST_F(ResumeTest, HalfRecordedVerdictIsCompletedOnce) {
  using When = FailingStore::When;
  for (const When when : {When::kBefore, When::kAfter}) {
    const std::string arm = when == When::kBefore ? "variant=v2" : "variant=v3";
    const std::string text = queue_text(ab_experiment("faster", arm + ",speed=1.5"));
    const Result<Queue> queue = parse_queue(text, "test.yaml");
    ASSERT_TRUE(queue.ok());
    FailingStore store(*store_, when);
    const Result<QueueOutcome> first = run_queue(*queue, runner_, store, options_, progress_);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(first->experiments[0].kind, OutcomeKind::kFailed);
    EXPECT_EQ(first->experiments[0].text, "the disk is full");
    options_.worker_command = {"/nonexistent"};  // nothing is measured again
    const QueueOutcome second = run(text);
    options_.worker_command = {program_path(), kFakeWorker};
    EXPECT_EQ(second.experiments[0].kind, OutcomeKind::kVerdict) << second.experiments[0].text;
    ASSERT_TRUE(second.experiments[0].record.has_value());
    EXPECT_THAT(second.experiments[0].record->rounds, SizeIs(2));
  }
  EXPECT_THAT(read().entries, SizeIs(2));
}

TEST_F(ResumeTest, InterruptedRunGoesOnBehindInconclusiveExperiments) {
  const std::string experiments =
      ab_experiment("first", "variant=v2") + ab_experiment("second", "variant=v3");
  (void)run_until_the_second(experiments);
  const QueueOutcome finished = run(queue_text(experiments, 4));
  EXPECT_EQ(finished.experiments[0].verdict(), ledger::Verdict::kInconclusive);
  EXPECT_THAT(finished.experiments[0].record->rounds, SizeIs(2)) << "not measured again";
  EXPECT_EQ(finished.experiments[1].verdict(), ledger::Verdict::kInconclusive);
  const QueueOutcome anew = run(queue_text(experiments, 4));
  EXPECT_THAT(anew.experiments[0].record->rounds, SizeIs(4)) << "a new run adds rounds";
}

TEST_F(ResumeTest, SecondProcessOnTheSameQueueIsToldWhoRunsIt) {
  const std::string experiments = ab_experiment("slow", "variant=v2,sleep=20", "", "sleep=20");
  write_text(queue_path_, queue_text(experiments, 1000));
  const std::string ledger = folder_ / "ledger";
  const pid_t first = start_queue(ledger, folder_ / "errors1");
  while (read_text(log_path_).empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const pid_t second = start_queue(ledger, folder_ / "errors2");
  int status = 0;
  ::waitpid(second, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  EXPECT_THAT(
      read_text(folder_ / "errors2"),
      HasSubstr(fmt::format("queue 'test' is being run on this ledger by process {}", first)));

  // Another queue may run, but not the same experiment.
  std::string other_queue = queue_text(experiments, 1000);
  other_queue.replace(other_queue.find("name: test"), 10, "name: other");
  const QueueOutcome outcome = run(other_queue);
  ASSERT_THAT(outcome.experiments, SizeIs(1));
  EXPECT_EQ(outcome.experiments[0].kind, OutcomeKind::kFailed);
  EXPECT_THAT(outcome.experiments[0].text, AllOf(HasSubstr("experiment 'slow' is being measured"),
                                                 HasSubstr(fmt::format("process {}", first))));
  ::kill(first, SIGKILL);
  ::waitpid(first, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_F(ResumeTest, DamagedJournalLinesAreSetAsideAndMeasuredAgain) {
  const std::string experiment = ab_experiment("slow", "variant=v2,speed=1.5");
  double clock = 0;
  options_.now_seconds = [&clock] { return clock += 1; };
  options_.budget_seconds = 25;
  ASSERT_EQ(run_one(experiment, 8).kind, OutcomeKind::kPaused);
  std::string path;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "ledger/journal")) {
    if (file.path().extension() == ".jsonl") path = file.path().string();
  }
  std::string text = read_text(path);
  const size_t third_line = text.find('\n', text.find('\n') + 1) + 1;
  text[third_line + 10] = '#';
  write_text(path, text + "{\"torn");
  options_.budget_seconds.reset();
  const Outcome outcome = run_one(experiment, 8);
  ASSERT_EQ(outcome.kind, OutcomeKind::kVerdict) << outcome.text;
  EXPECT_THAT(outcome.notes, testing::IsSupersetOf({HasSubstr(":3: set aside"),
                                                    HasSubstr(": set aside: journal: not JSON")}));
  ASSERT_THAT(outcome.record->rounds, SizeIs(2));
  for (const ledger::MeasuredBody& measured : outcome.record->rounds) {
    EXPECT_EQ(std::count_if(measured.round.pairs.begin(), measured.round.pairs.end(),
                            [](const auto& pair) { return !pair.warmup; }),
              8);
  }
}

}  // namespace
}  // namespace reckon::experiment
