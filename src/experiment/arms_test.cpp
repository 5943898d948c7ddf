// Several arms of one switch, and a queue as a gate.
#include <gmock/gmock.h>

#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using ledger::Verdict;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class ArmsTest : public LedgerTest {
 protected:
  // Experiment and round of every counted pair, in the order in which they were measured.
  class Order : public Progress {
   public:
    void on_pair(const PairProgress& pair) override {
      if (pair.warmup) return;
      const std::string text = fmt::format("{} {}", pair.experiment, pair.round);
      if (order.empty() || order.back() != text) order.push_back(text);
    }
    std::vector<std::string> order;
  };

  static std::string several(const std::string& arms) {
    return fmt::format(
        "  - id: x\n    idea: Try them\n    switch: {{key: arm, base: \"variant=v1\", arms: "
        "[{}]}}\n"
        "    workload: {{phase: decode, prompt: Once upon a time, generate: 8}}\n"
        "    reach: {{op: matmul, phase: decode}}\n",
        arms);
  }
};

TEST_F(ArmsTest, RoundsAreInterleavedAndEachArmHasItsEntry) {
  store_noise();
  const auto queue = parse_queue(
      queue_text(several("\"variant=v2,speed=1.05\", \"variant=v3,speed=0.95\"")), "test.yaml");
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  Order progress;
  const auto result = run_queue(*queue, runner_, *store_, options_, progress);
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_THAT(result->experiments, SizeIs(2));
  EXPECT_EQ(result->experiments[0].verdict(), Verdict::kWon) << result->experiments[0].text;
  EXPECT_EQ(result->experiments[1].verdict(), Verdict::kLost) << result->experiments[1].text;
  EXPECT_NE(result->experiments[0].entry, result->experiments[1].entry);
  EXPECT_THAT(progress.order,
              ElementsAre("x:variant=v2,speed=1.05 1", "x:variant=v3,speed=0.95 1",
                          "x:variant=v2,speed=1.05 2", "x:variant=v3,speed=0.95 2"));
  const ledger::Scope& scope = result->experiments[1].record->idea.scope;
  EXPECT_EQ(scope.base_value, "variant=v1");
  EXPECT_EQ(scope.arm_value, "variant=v3,speed=0.95");
}

TEST_F(ArmsTest, AnArmThatBreaksLeavesTheOthersAlone) {
  store_noise();
  const QueueOutcome outcome = run(queue_text(
      several("\"variant=v2,fault=crash@2\", \"variant=v3,speed=1.5\", \"variant=v1,speed=2\"")));
  ASSERT_THAT(outcome.experiments, SizeIs(3));
  EXPECT_EQ(outcome.experiments[0].verdict(), Verdict::kBroke);
  EXPECT_EQ(outcome.experiments[1].verdict(), Verdict::kWon);
  EXPECT_EQ(outcome.experiments[2].verdict(), Verdict::kVoid);
}

TEST_F(ArmsTest, GateFailsOnARegressionNowAndWhenItIsKnown) {
  store_noise();
  const std::string won = ab_experiment("won", "variant=v2,speed=1.5");
  const std::string lost = ab_experiment("lost", "variant=v3,speed=0.5");
  EXPECT_EQ(run(queue_text(won)).gate_exit_code(), 0);
  const QueueOutcome first = run(queue_text(won + lost));
  EXPECT_EQ(first.exit_code(), 0);
  EXPECT_EQ(first.gate_exit_code(), 4);
  const QueueOutcome again = run(queue_text(won + lost));
  EXPECT_EQ(again.exit_code(), 3) << "the ledger knows";
  EXPECT_EQ(again.experiments[1].known_verdict, Verdict::kLost);
  EXPECT_EQ(again.gate_exit_code(), 4) << "and so does the gate";
  EXPECT_EQ(run(queue_text(won)).gate_exit_code(), 0) << "known to be no regression";
}

TEST_F(ArmsTest, GateFailsOnWhatBreaksOrDoesNotFit) {
  EXPECT_EQ(run(queue_text(ab_experiment("x", "variant=v2,diverge=3"))).gate_exit_code(), 4);
  EXPECT_EQ(
      run(queue_text(ab_experiment("y", "variant=v2,bytes=2000", "    memory_limit: plan+500B\n")))
          .gate_exit_code(),
      4);
}

TEST_F(ArmsTest, GateIsUndecidedWhereSomethingIsMissing) {
  store_noise();
  const std::string won = ab_experiment("won", "variant=v2,speed=1.5");
  EXPECT_EQ(run(queue_text(won + ab_experiment("tiny", "variant=v3", "    claim: \"+0.001%\"\n")))
                .gate_exit_code(),
            3)
      << "a claim that cannot be seen";
  options_.stop_requested = [] { return true; };
  EXPECT_EQ(run(queue_text(ab_experiment("late", "variant=v4"))).gate_exit_code(), 3) << "paused";
  options_.stop_requested = nullptr;
  EXPECT_EQ(run(queue_text(ab_experiment("lies", "variant=v2,lie=extra"))).gate_exit_code(), 1);
  EXPECT_EQ(run(queue_text(ab_experiment("bad", "forbidden"))).gate_exit_code(), 2);
}

TEST_F(ArmsTest, EvidenceFillsItselfIn) {
  store_noise();
  const Outcome outcome = run_one(ab_experiment("faster", "variant=v2,speed=1.5,bytes=1200"));
  ASSERT_EQ(outcome.verdict(), Verdict::kWon) << outcome.text;
  EXPECT_THAT(
      outcome.record->verdict->evidence,
      ElementsAre("scratch: base 1000 B, arm 1200 B", "share of the bound: base 50%, arm 75%"));
  EXPECT_EQ(outcome.record->verdict->extra["evidence_table"]["arm"][1]["value"], "75%");
}

TEST_F(ArmsTest, EvidenceNamesKernelsThatTakeOtherResources) {
  store_noise();
  const Outcome outcome =
      run_one(ab_experiment("device", "variant=v2,registers=168", "", "variant=v1,registers=96"));
  ASSERT_TRUE(outcome.record->verdict) << outcome.text;
  const std::vector<std::string>& evidence = outcome.record->verdict->evidence;
  EXPECT_THAT(evidence, Contains("decode matmul: base 96 registers, arm 168 registers"));
  EXPECT_THAT(evidence, Not(Contains(HasSubstr("attention")))) << "the same in both";
}

TEST_F(ArmsTest, AForcedEntryTakesNoRoundsOfOthers) {
  const Outcome first = run_one(ab_experiment("open", "variant=v2,speed=1.05"));
  ASSERT_EQ(first.verdict(), Verdict::kInconclusive);
  options_.force_reason = "replay of " + first.entry;
  const Outcome second = run_one(ab_experiment("open", "variant=v2,speed=1.05"));
  EXPECT_EQ(second.verdict(), Verdict::kInconclusive);
  EXPECT_NE(second.entry, first.entry);
  EXPECT_THAT(second.record->rounds, SizeIs(2));
  EXPECT_EQ(second.record->idea.force_reason, "replay of " + first.entry);
}

}  // namespace
}  // namespace reckon::experiment
