// Every verdict, and what is no verdict, through the whole run with a child process as its worker.
#include "experiment/run.h"

#include <gmock/gmock.h>

#include "experiment/markdown.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using ledger::Verdict;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RunTest : public LedgerTest {
 protected:
  void expect_verdict(const Outcome& outcome, Verdict verdict) {
    ASSERT_EQ(outcome.kind, OutcomeKind::kVerdict) << outcome.text;
    ASSERT_TRUE(outcome.verdict().has_value());
    EXPECT_EQ(*outcome.verdict(), verdict) << outcome.text;
    const ledger::Ledger ledger = read();
    const ledger::Entry* entry = ledger.find(outcome.entry);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->verdict->verdict, verdict);
    EXPECT_FALSE(entry->idea.reproduce.queue_text.empty());
    EXPECT_EQ(entry->idea.reproduce.command, options_.command);
    EXPECT_FALSE(entry->verdict->sources.empty());
  }

  void expect_failure(const Outcome& outcome, const std::string& text) {
    EXPECT_EQ(outcome.kind, OutcomeKind::kFailed);
    EXPECT_THAT(outcome.text, HasSubstr(text));
    EXPECT_THAT(read().entries, IsEmpty()) << "nothing may be recorded";
  }
};

TEST_F(RunTest, FasterArmWins) {
  store_noise();
  const Outcome outcome =
      run_one(ab_experiment("faster", "variant=v2,speed=1.05", "    claim: \"+2%\"\n"));
  expect_verdict(outcome, Verdict::kWon);
  const ledger::VerdictBody& verdict = *outcome.record->verdict;
  ASSERT_TRUE(verdict.numbers.has_value());
  EXPECT_NEAR(*verdict.numbers->effect, 0.05, 1e-12);
  EXPECT_THAT(verdict.numbers->base_values, testing::ElementsAre(100, 100));
  EXPECT_EQ(verdict.numbers->noise_rounds, 20);
  EXPECT_TRUE(verdict.numbers->noise_band.has_value());
  EXPECT_TRUE(verdict.proof->observed);
  EXPECT_THAT(verdict.proof->only_base, testing::ElementsAre("decode matmul 1x64x64 q4_0 v1 @s1"));
  EXPECT_THAT(verdict.proof->only_arm, testing::ElementsAre("decode matmul 1x64x64 q4_0 v2 @s1"));
  EXPECT_THAT(verdict.proof->side_effects, IsEmpty());
  EXPECT_TRUE(verdict.tokens->identical);
  EXPECT_EQ(verdict.tokens->compared, 8);
  EXPECT_EQ(verdict.peaks->arm_bytes, 1000u);
  EXPECT_EQ(verdict.environment.commit, "0123abc");
  EXPECT_EQ(verdict.environment.facts.at("temperature_c"), 40);
  EXPECT_EQ(verdict.environment.extra["unknown_to_the_ledger"], 7);
  ASSERT_THAT(outcome.record->rounds, SizeIs(2));
  for (const ledger::MeasuredBody& measured : outcome.record->rounds) {
    EXPECT_THAT(measured.round.pairs, SizeIs(3)) << "one warm-up pair and two that count";
    EXPECT_TRUE(measured.round.pairs[0].warmup);
    EXPECT_NE(measured.round.pairs[1].arm_first, measured.round.pairs[2].arm_first);
    EXPECT_EQ(measured.round.extra["processes"], 1);
  }
}

TEST_F(RunTest, SlowerArmLoses) {
  store_noise();
  const Outcome outcome = run_one(ab_experiment("slower", "variant=v2,speed=0.95"));
  expect_verdict(outcome, Verdict::kLost);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("LOST: -5.0% decode_tok_per_s"),
                                  HasSubstr("100.0 / 100.0 -> 95.00 / 95.00 tok/s")));
}

TEST_F(RunTest, LowerIsBetterForTimes) {
  const std::string metric = "    metric: ms_per_token\n";
  ASSERT_EQ(run_one(aa_experiment("floor", 20) + metric).kind, OutcomeKind::kFloor);
  const Outcome outcome = run_one(ab_experiment("faster", "variant=v2,speed=1.05", metric));
  expect_verdict(outcome, Verdict::kWon);
}

TEST_F(RunTest, EqualSpeedOfOtherCodeIsNeutral) {
  store_noise();
  const Outcome outcome = run_one(ab_experiment("same", "variant=v2", "    claim: \"+2%\"\n"));
  expect_verdict(outcome, Verdict::kNeutral);
}

TEST_F(RunTest, WithoutClaimSmallEffectIsInconclusive) {
  store_noise();
  const Outcome outcome = run_one(ab_experiment("small", "variant=v2,speed=1.0001"));
  expect_verdict(outcome, Verdict::kInconclusive);
  EXPECT_THAT(outcome.text, HasSubstr("without a claim it cannot be called NEUTRAL"));
}

TEST_F(RunTest, WithoutNoiseRoundsInconclusiveAndSaysHowManyAreMissing) {
  store_noise(3);
  const Outcome outcome = run_one(ab_experiment("faster", "variant=v2,speed=1.5,sleep=1"));
  expect_verdict(outcome, Verdict::kInconclusive);
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("3 of 20 A/A rounds of this workload class are stored; 17 missing"),
                    HasSubstr("which take about"), testing::Not(HasSubstr("noise band"))));
  const std::string page = markdown_page(QueueOutcome{"q", {outcome}});
  EXPECT_THAT(page, AllOf(HasSubstr("- Noise band not yet known: 3 of 20 A/A rounds\n"),
                          testing::Not(HasSubstr("90% interval"))));
}

TEST_F(RunTest, InconclusiveEntryIsJoinedByLaterRounds) {
  const Outcome first = run_one(ab_experiment("faster", "variant=v2,speed=1.05"));
  expect_verdict(first, Verdict::kInconclusive);
  store_noise();
  const Outcome second = run_one(ab_experiment("faster", "variant=v2,speed=1.05"));
  expect_verdict(second, Verdict::kWon);
  EXPECT_EQ(second.entry, first.entry);
  ASSERT_THAT(second.record->rounds, SizeIs(4));
  EXPECT_EQ(second.record->rounds[3].round.index, 3);
  EXPECT_THAT(second.record->verdict->rounds, SizeIs(4));
  EXPECT_THAT(second.record->verdict->numbers->base_values, SizeIs(4));
}

TEST_F(RunTest, EqualPlansAreVoidWithoutRunning) {
  options_.worker_command = {"/nonexistent"};
  const Outcome outcome = run_one(ab_experiment("nothing", "variant=v1,speed=1.5"));
  expect_verdict(outcome, Verdict::kVoid);
  EXPECT_EQ(outcome.text,
            "VOID: the plans of both arms are equal at matmul/decode: the rule of matmul");
  EXPECT_THAT(outcome.record->verdict->extra["reasons"],
              testing::ElementsAre("the rule of matmul"));
  EXPECT_FALSE(outcome.record->verdict->numbers.has_value());
  EXPECT_FALSE(outcome.record->verdict->proof->observed);
  EXPECT_THAT(outcome.record->rounds, IsEmpty());
}

TEST_F(RunTest, EqualObservationsAreVoidAfterRunning) {
  const Outcome outcome = run_one(ab_experiment("gated", "variant=v1,possible=v3,speed=1.5"));
  expect_verdict(outcome, Verdict::kVoid);
  EXPECT_TRUE(outcome.record->verdict->proof->observed);
  EXPECT_FALSE(outcome.record->verdict->numbers.has_value());
  EXPECT_THAT(outcome.record->rounds, SizeIs(2)) << "samples are kept";
}

TEST_F(RunTest, PossibleRowThatRunsIsNoLie) {
  store_noise();
  const Outcome outcome =
      run_one(ab_experiment("gated", "variant=v1,possible=v3,takes=1,speed=1.5"));
  expect_verdict(outcome, Verdict::kWon);
}

TEST_F(RunTest, DifferencesOutsideTheReachAreSideEffects) {
  store_noise();
  const Outcome outcome = run_one(ab_experiment("wide", "variant=v2,speed=1.5,side=fancy"));
  expect_verdict(outcome, Verdict::kWon);
  EXPECT_THAT(outcome.record->verdict->proof->side_effects,
              testing::ElementsAre("base: decode attention 1x64 plain @a1",
                                   "arm: decode attention 1x64 fancy @a1"));
  EXPECT_THAT(outcome.text, HasSubstr("side effects: 2 rows outside the reach"));
}

TEST_F(RunTest, OtherTokensAreBroke) {
  const Outcome outcome = run_one(ab_experiment("wrong", "variant=v2,speed=43,diverge=3"));
  expect_verdict(outcome, Verdict::kBroke);
  const ledger::VerdictBody& verdict = *outcome.record->verdict;
  EXPECT_FALSE(verdict.numbers.has_value()) << "a failed arm has no ratio";
  ASSERT_TRUE(verdict.tokens->first_divergence.has_value());
  EXPECT_EQ(verdict.tokens->first_divergence->position, 3);
  EXPECT_EQ(verdict.tokens->first_divergence->base_token, 21);
  EXPECT_EQ(verdict.tokens->first_divergence->arm_token, 22);
  EXPECT_NEAR(*verdict.tokens->first_divergence->margin, 3.5, 1e-6);
  EXPECT_EQ(verdict.tokens->first_divergence->prompt, "Once upon a time");
}

TEST_F(RunTest, CrashIsBrokeAndKeepsThePairsBeforeIt) {
  const Outcome outcome = run_one(ab_experiment("crashes", "variant=v2,fault=crash@3"), 4);
  expect_verdict(outcome, Verdict::kBroke);
  EXPECT_THAT(outcome.text,
              AllOf(HasSubstr("the arm broke: signal 11 (SIGSEGV)"), HasSubstr("about to crash")));
  EXPECT_FALSE(outcome.record->verdict->numbers.has_value());
  EXPECT_EQ(outcome.record->verdict->extra["unfinished_pairs"].size(), 2u);
}

TEST_F(RunTest, CrashInTheSecondRoundKeepsTheFirst) {
  // Worker processes inherit what is set when the first round is complete.
  class Sabotage : public Progress {
    void on_pair(const PairProgress& pair) override {
      if (!pair.warmup && pair.pair == pair.pairs) ::setenv("RECKON_TEST_LATE", "1", 1);
    }
  } sabotage;
  const Result<Queue> queue =
      parse_queue(queue_text(ab_experiment("late", "variant=v2,fault=late@2")), "test.yaml");
  ASSERT_TRUE(queue.ok());
  const Result<QueueOutcome> result = run_queue(*queue, runner_, *store_, options_, sabotage);
  ::unsetenv("RECKON_TEST_LATE");
  ASSERT_TRUE(result.ok());
  const Outcome& outcome = result->experiments.front();
  expect_verdict(outcome, Verdict::kBroke);
  EXPECT_THAT(outcome.record->rounds, SizeIs(1));
  EXPECT_THAT(outcome.record->verdict->rounds, SizeIs(1));
  EXPECT_EQ(outcome.record->verdict->extra["unfinished_pairs"].size(), 1u);
  EXPECT_FALSE(outcome.record->verdict->numbers.has_value());
}

TEST_F(RunTest, ExitIsBroke) {
  const Outcome outcome = run_one(ab_experiment("exits", "variant=v2,fault=exit@1"));
  expect_verdict(outcome, Verdict::kBroke);
  EXPECT_THAT(outcome.text, HasSubstr("the arm broke: exit code 3"));
}

TEST_F(RunTest, BaseArmThatCrashesIsNamed) {
  const Outcome outcome =
      run_one(ab_experiment("base", "variant=v2", "", "variant=v1,fault=crash@1"));
  expect_verdict(outcome, Verdict::kBroke);
  EXPECT_THAT(outcome.text, HasSubstr("the base arm broke"));
}

TEST_F(RunTest, HangIsBroke) {
  const Outcome outcome =
      run_one(ab_experiment("hangs", "variant=v2,fault=hang@2", "    timeout: 1s\n"));
  expect_verdict(outcome, Verdict::kBroke);
  EXPECT_THAT(outcome.text, HasSubstr("the arm broke: no answer within 1 s"));
}

TEST_F(RunTest, GarbageIsBroke) {
  const Outcome outcome = run_one(ab_experiment("babbles", "variant=v2,fault=garbage@1"));
  expect_verdict(outcome, Verdict::kBroke);
  EXPECT_THAT(outcome.text, HasSubstr("garbage instead of an answer"));
}

TEST_F(RunTest, ArmOverItsLimitIsOutOfMemoryWithoutRunning) {
  options_.worker_command = {"/nonexistent"};
  const Outcome outcome =
      run_one(ab_experiment("big", "variant=v2,bytes=2000", "    memory_limit: plan+500B\n"));
  expect_verdict(outcome, Verdict::kOutOfMemory);
  const ledger::MemoryPlan& plan = *outcome.record->verdict->memory_plan;
  EXPECT_EQ(plan.budget_bytes, 1500u);
  EXPECT_EQ(plan.base_bytes, 1000u);
  EXPECT_EQ(plan.arm_bytes, 2000u);
  ASSERT_THAT(plan.arm_terms, SizeIs(2));
  EXPECT_EQ(plan.arm_terms[0].name, "scratch: matmul");
  EXPECT_EQ(plan.arm_terms[0].bytes, 1900u);
  EXPECT_EQ(outcome.record->idea.scope.memory_limit, "plan+500");
}

TEST_F(RunTest, ArmRefusedForMemoryWhileRunningIsOutOfMemory) {
  const Outcome outcome = run_one(ab_experiment("big", "variant=v2,fault=refuse@1"));
  expect_verdict(outcome, Verdict::kOutOfMemory);
  EXPECT_THAT(outcome.text, HasSubstr("needs 2 GiB, and 1 GiB is free"));
}

TEST_F(RunTest, BaseArmThatDoesNotFitIsRefused) {
  const std::string limit = "    memory_limit: 900B\n";
  const Outcome planned = run_one(ab_experiment("big", "variant=v2", limit));
  EXPECT_EQ(planned.kind, OutcomeKind::kRefused);
  EXPECT_THAT(planned.text, HasSubstr("the base arm itself does not fit"));
  const Outcome running =
      run_one(ab_experiment("big", "variant=v2", "", "variant=v1,fault=refuse@1"));
  EXPECT_EQ(running.kind, OutcomeKind::kRefused);
  EXPECT_THAT(read().entries, IsEmpty());
}

TEST_F(RunTest, LyingPlanFailsWithoutARecord) {
  expect_failure(
      run_one(ab_experiment("lies", "variant=v2,lie=extra")),
      "the arm dispatched what its plan does not list: decode matmul 1x64x64 q4_0 phantom");
  expect_failure(run_one(ab_experiment("lies", "variant=v2,lie=missing")),
                 "the arm did not dispatch what its plan calls certain");
  expect_failure(run_one(ab_experiment("lies", "variant=v2", "", "variant=v1,lie=extra")),
                 "the base arm dispatched");
}

TEST_F(RunTest, OwnFailuresAreNoVerdict) {
  const Outcome error = run_one(ab_experiment("fails", "variant=v2,fault=error@2"));
  expect_failure(error, "the arm: the device was unplugged");
  const Outcome usage = run_one(ab_experiment("fails", "variant=v2,fault=usage@2"));
  expect_failure(usage, "the model lost its tokenizer");
  EXPECT_EQ(usage.error, ErrorKind::kUsage);
  expect_failure(run_one(ab_experiment("zero", "variant=v2,fault=zero@2")), "must be above zero");
  expect_failure(
      run_one(ab_experiment("unstable", "variant=v2,unstable=1", "", "variant=v1,unstable=1")),
      "the base arm did not generate the same tokens again");
  options_.worker_command = {"/nonexistent/worker"};
  expect_failure(run_one(ab_experiment("nobody", "variant=v2")), "cannot be started");
  options_.worker_command = {"/bin/false"};
  expect_failure(run_one(ab_experiment("nobody", "variant=v2")), "did not start: exit code 1");
}

TEST_F(RunTest, MistakesOfTheQueueNameItsLine) {
  const auto expect_usage = [&](const std::string& experiment, const std::string& text) {
    const Outcome outcome = run_one(experiment);
    expect_failure(outcome, text);
    EXPECT_EQ(outcome.error, ErrorKind::kUsage);
    EXPECT_THAT(outcome.text, HasSubstr("test.yaml:4: experiment 'x': "));
  };
  expect_usage(ab_experiment("x", "variant=v2", "    metric: decode_tok_per_sec\n"),
               "unknown metric 'decode_tok_per_sec'; did you mean 'decode_tok_per_s'?");
  expect_usage(ab_experiment("x", "variant=v2", "    set: {aarm: 1}\n"), "unknown switch 'aarm'");
  expect_usage(ab_experiment("x", "forbidden"), "'arm' cannot be forbidden");
  expect_usage(ab_experiment("x", "variant=v2", "    model: huge\n"), "no model is called 'huge'");
  std::string wrong_reach = ab_experiment("x", "variant=v2");
  wrong_reach.replace(wrong_reach.find("op: matmul"), 10, "op: matmull");
  expect_usage(wrong_reach, "neither arm runs anything there; they run attention/decode");
}

TEST_F(RunTest, AMistakeAnywhereKeepsTheWholeQueueFromBeingMeasured) {
  const QueueOutcome outcome = run(
      queue_text(aa_experiment("floor", 2) + ab_experiment("good", "variant=v2,speed=2") +
                 ab_experiment("void", "variant=v1,speed=3") + ab_experiment("bad", "forbidden") +
                 ab_experiment("unknown", "variant=v2", "    model: huge\n")));
  EXPECT_EQ(outcome.exit_code(), 2);
  ASSERT_THAT(outcome.experiments, SizeIs(5));
  for (const size_t i : {0, 1, 2}) {
    EXPECT_EQ(outcome.experiments[i].kind, OutcomeKind::kPaused);
    EXPECT_EQ(outcome.experiments[i].text, "not started: another experiment of the queue is wrong");
  }
  expect_failure(outcome.experiments[3], "experiment 'bad': 'arm' cannot be forbidden");
  expect_failure(outcome.experiments[4], "experiment 'unknown': no model is called 'huge'");
}

TEST_F(RunTest, ClaimBelowWhatTheDesignSeesIsRefused) {
  store_noise();
  const Outcome outcome = run_one(ab_experiment("tiny", "variant=v2", "    claim: \"+0.001%\"\n"));
  EXPECT_EQ(outcome.kind, OutcomeKind::kRefused);
  EXPECT_THAT(outcome.text, AllOf(HasSubstr("is smaller than 2 rounds of 2 pairs can see here"),
                                  HasSubstr("no number of rounds of this size sees it")));
}

TEST_F(RunTest, FloorGetsNoVerdictAndIsKeptWhenComplete) {
  const Outcome first = run_one(aa_experiment("floor", 3));
  EXPECT_EQ(first.kind, OutcomeKind::kFloor);
  ASSERT_TRUE(first.floor && first.floor->band);
  EXPECT_EQ(first.floor->noise.rounds, 3);
  EXPECT_GT(first.floor->noise.standard_deviation, 0);
  EXPECT_EQ(first.text, "3 A/A rounds; noise band not yet known: 3 of 20 A/A rounds")
      << "3 say too little";
  EXPECT_FALSE(first.record->verdict.has_value());

  const Outcome more = run_one(aa_experiment("floor", 5));
  EXPECT_EQ(more.kind, OutcomeKind::kFloor);
  EXPECT_EQ(more.entry, first.entry);
  ASSERT_THAT(more.record->rounds, SizeIs(5));
  EXPECT_THAT(more.text, AllOf(HasSubstr("5 A/A rounds, s_m"), HasSubstr("noise band ±"),
                               HasSubstr("15 more before a verdict")));
  EXPECT_EQ(more.record->rounds.back().round.index, 4);

  const QueueOutcome kept = run(queue_text(aa_experiment("floor", 5)));
  EXPECT_EQ(kept.experiments[0].kind, OutcomeKind::kKept);
  EXPECT_THAT(kept.experiments[0].text, HasSubstr("kept 5 A/A rounds"));
  EXPECT_EQ(kept.exit_code(), 3);
}

TEST_F(RunTest, FloorsThatBreakAreFailures) {
  expect_failure(run_one(aa_experiment("floor", 2, "fault=crash@2")), "broke: signal 11");
  expect_failure(run_one(aa_experiment("floor", 2, "lie=extra")), "plan does not list");
}

TEST_F(RunTest, ExitCodes) {
  const std::string won = ab_experiment("won", "variant=v2,speed=1.5");
  const std::string failing = ab_experiment("failing", "variant=v2,lie=extra");
  const std::string usage = ab_experiment("usage", "forbidden");
  const std::string nothing = ab_experiment("void", "variant=v1,speed=2");
  const QueueOutcome first = run(queue_text(nothing + failing));
  EXPECT_EQ(first.exit_code(), 1) << "the worst counts, and the others were run";
  EXPECT_EQ(first.experiments[0].kind, OutcomeKind::kVerdict);
  EXPECT_EQ(run(queue_text(nothing + usage)).exit_code(), 2);
  EXPECT_EQ(run(queue_text(nothing)).exit_code(), 3) << "known already";
  EXPECT_EQ(run(queue_text(nothing + won)).exit_code(), 0);
}

TEST_F(RunTest, DirtyTreeMakesTheEntryUnfinished) {
  const Outcome outcome = run_one(ab_experiment("dirty", "variant=v2"), 2, "tiny;dirty");
  ASSERT_TRUE(outcome.record.has_value());
  EXPECT_THAT(outcome.record->unfinished_because(),
              testing::Contains("measured from a dirty tree"));
}

TEST_F(RunTest, SeedFixesTheOrder) {
  const auto orders = [&](const std::string& id) {
    // VOID in the end, which blocks, so that a forced run starts an entry of its own.
    const Outcome outcome = run_one(ab_experiment(id, "variant=v1,possible=v2"), 20);
    std::vector<bool> order;
    for (const ledger::MeasuredBody& measured : outcome.record->rounds) {
      EXPECT_NE(measured.round.seed, 0u);
      for (const ledger::PairSample& pair : measured.round.pairs) {
        if (!pair.warmup) order.push_back(pair.arm_first);
      }
    }
    return order;
  };
  const std::vector<bool> first = orders("a");
  EXPECT_EQ(std::count(first.begin(), first.end(), true), 20);
  options_.force_reason = "the same again";
  EXPECT_EQ(orders("b"), first);
  options_.seed = 8;
  EXPECT_NE(orders("c"), first);
}

}  // namespace
}  // namespace reckon::experiment
