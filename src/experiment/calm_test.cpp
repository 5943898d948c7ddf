// Dirty windows and the negative control.
#include "experiment/calm.h"

#include <gmock/gmock.h>

#include <deque>

#include "experiment/machine_watch.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using ledger::Verdict;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

MachineWindow busy(double share) {
  MachineWindow window;
  window.seconds = 1;
  window.other_share = share;
  return window;
}

TEST(WhyDirty, HasAThresholdForEachReading) {
  EXPECT_EQ(why_dirty({}), "") << "nothing is known";
  EXPECT_EQ(why_dirty(busy(0.09)), "");
  EXPECT_EQ(why_dirty(busy(0.43)), "other processes took 43.0% of the processors");
  MachineWindow window;
  window.stolen_share = 0.04;
  window.throttled = 0;
  window.clock_share = 0.6;
  EXPECT_EQ(why_dirty(window), "");
  window.clock_share = 0.4;
  EXPECT_EQ(why_dirty(window), "the fastest core ran at 40.0% of its highest clock");
  window.stolen_share = 0.06;
  EXPECT_EQ(why_dirty(window), "the host took 6.0% of the processors");
  window.throttled = 2;
  EXPECT_EQ(why_dirty(window), "the processor was throttled for its temperature (2 times)");
}

// Gives the windows of a script, and after it clean ones.
class ScriptedWatch : public MachineWatch {
 public:
  std::optional<MachineWindow> look(pid_t child) override {
    EXPECT_NE(child, 0);
    if (windows.empty()) return busy(always);
    const std::optional<MachineWindow> next = windows.front();
    windows.pop_front();
    return next;
  }
  std::deque<std::optional<MachineWindow>> windows;
  double always = 0;
};

class CalmTest : public LedgerTest {
 protected:
  CalmTest() {
    options_.watch = &watch_;
    options_.now_seconds = [this] { return now_; };
    options_.sleep_seconds = [this](double seconds) { now_ += seconds; };
  }
  ScriptedWatch watch_;
  double now_ = 0;
};

TEST_F(CalmTest, ADisturbedPairIsKeptAndMeasuredAgainOnceItIsCalm) {
  store_noise();
  // A round's start, its warm-up, its first pair; then two looks while it waits.
  watch_.windows = {std::nullopt, busy(0), busy(0.5), busy(0.4), busy(0)};
  const Outcome outcome = run_one(ab_experiment("x", "variant=v2,speed=1.5"));
  ASSERT_EQ(outcome.verdict(), Verdict::kWon) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("1 pair measured again and 2.0 s waited for calm, the latest "
                                      "because other processes took 50.0% of the processors"));
  const ledger::Round& round = outcome.record->rounds[0].round;
  ASSERT_EQ(round.pairs.size(), 4u) << "a warm-up, the disturbed one, and two that count";
  int disturbed = 0;
  for (const ledger::PairSample& pair : round.pairs) {
    if (!pair.extra.contains("disturbed")) continue;
    ++disturbed;
    EXPECT_TRUE(pair.warmup) << "kept and not counted";
  }
  EXPECT_EQ(disturbed, 1);
  EXPECT_EQ(outcome.record->verdict->extra["disturbance"]["pairs"], 1);
}

TEST_F(CalmTest, AMachineThatStaysBusyStopsTheRunAndLosesNothing) {
  watch_.always = 0.5;
  options_.most_wait_seconds = 60;
  const Outcome outcome = run_one(ab_experiment("x", "variant=v2,speed=1.5"));
  EXPECT_EQ(outcome.kind, OutcomeKind::kPaused);
  EXPECT_THAT(outcome.text, HasSubstr("the machine did not become calm within 60 s: other "
                                      "processes took 50.0% of the processors"));
  watch_.always = 0;
  EXPECT_EQ(run_one(ab_experiment("x", "variant=v2,speed=1.5")).kind, OutcomeKind::kVerdict);
}

TEST_F(CalmTest, TooManyDisturbedPairsAreVoidWithoutANumber) {
  store_noise();
  watch_.windows = {std::nullopt, busy(0)};
  for (int i = 0; i < 3; ++i) {
    watch_.windows.emplace_back(busy(0.9));
    watch_.windows.emplace_back(busy(0));
  }
  const Outcome outcome = run_one(ab_experiment("x", "variant=v2,speed=1.5"));
  ASSERT_EQ(outcome.verdict(), Verdict::kVoid) << outcome.text;
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("disturbed beyond use: 3 pairs of one round"),
                                  Not(HasSubstr("tok/s"))));
  const ledger::VerdictBody& verdict = *outcome.record->verdict;
  EXPECT_EQ(verdict.void_reason, ledger::VoidReason::kDisturbed);
  EXPECT_FALSE(verdict.numbers.has_value());
  EXPECT_EQ((QueueOutcome{"q", {outcome}}.gate_exit_code()), 3);
  const Outcome again = run_one(ab_experiment("x", "variant=v2,speed=1.5"));
  EXPECT_EQ(again.verdict(), Verdict::kWon) << "it never blocks: " << again.text;
}

TEST_F(CalmTest, AFloorThatIsDisturbedKeepsItsRounds) {
  watch_.windows = {std::nullopt, busy(0)};
  for (int i = 0; i < 3; ++i) {
    watch_.windows.emplace_back(busy(0.9));
    watch_.windows.emplace_back(busy(0));
  }
  const Outcome outcome = run_one(aa_experiment("floor", 2));
  EXPECT_EQ(outcome.kind, OutcomeKind::kRefused);
  EXPECT_THAT(outcome.text, HasSubstr("disturbed beyond use"));
  EXPECT_EQ(run_one(aa_experiment("floor", 2)).kind, OutcomeKind::kFloor);
}

TEST_F(CalmTest, TheBudgetEndsAWait) {
  watch_.always = 0.5;
  options_.budget_seconds = 5;
  const Outcome outcome = run_one(ab_experiment("x", "variant=v2"));
  EXPECT_EQ(outcome.kind, OutcomeKind::kPaused);
  EXPECT_THAT(outcome.text, HasSubstr("the budget is spent"));
}

const std::string kControl = "    control: prefill_tok_per_s\n";

class ControlTest : public LedgerTest {
 protected:
  void store_control_noise() {
    const Outcome outcome = run_one(aa_experiment("floor", 20) + kControl);
    ASSERT_EQ(outcome.kind, OutcomeKind::kFloor) << outcome.text;
  }
};

TEST_F(ControlTest, AControlThatStaysIsShown) {
  store_control_noise();
  const Outcome outcome = run_one(ab_experiment("x", "variant=v2,speed=1.5", kControl));
  EXPECT_EQ(outcome.verdict(), Verdict::kWon) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("control prefill_tok_per_s +0.0%, within ±"));
  EXPECT_THAT(outcome.record->idea.reproduce.queue_text,
              HasSubstr("control: \"prefill_tok_per_s\""));
}

TEST_F(ControlTest, AControlThatMovesTakesTheVerdict) {
  store_control_noise();
  const Outcome outcome = run_one(ab_experiment("x", "variant=v2,speed=1.5,other=1.1", kControl));
  EXPECT_EQ(outcome.verdict(), Verdict::kInconclusive);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("control prefill_tok_per_s +10.0%, beyond ±"),
                                  HasSubstr("it would be WON, but the control moved")));
}

TEST_F(ControlTest, WithoutNoiseItDecidesNothing) {
  store_noise();
  const Outcome outcome = run_one(ab_experiment("x", "variant=v2,speed=1.5,other=1.1", kControl));
  EXPECT_EQ(outcome.verdict(), Verdict::kWon);
  EXPECT_THAT(outcome.text, HasSubstr("its noise is not yet known: 0 of 20 A/A rounds"));
}

TEST_F(ControlTest, AControlWithinReachIsNone) {
  const auto text_of = [&](const std::string& control) {
    return run_one(ab_experiment("x", "variant=v2", "    control: " + control + "\n")).text;
  };
  EXPECT_THAT(text_of("decode_tok_per_s"), HasSubstr("is the metric itself"));
  EXPECT_THAT(text_of("ms_per_token"), HasSubstr("where the switch may move it"));
  EXPECT_THAT(text_of("prefill"), HasSubstr("unknown metric 'prefill'"));
}

}  // namespace
}  // namespace reckon::experiment
