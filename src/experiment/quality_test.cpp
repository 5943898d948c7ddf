// Arms whose tokens may diverge: what that costs is measured and shown.
#include <gmock/gmock.h>

#include "experiment/markdown.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using ledger::Verdict;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kMayDiverge = "    tokens: may-diverge\n";

class QualityTest : public LedgerTest {};

TEST_F(QualityTest, AWinShowsWhatItCosts) {
  store_noise();
  const Outcome outcome =
      run_one(ab_experiment("rough", "variant=v2,speed=1.5,diverge=3,kl=0.01", kMayDiverge));
  ASSERT_EQ(outcome.verdict(), Verdict::kWon) << outcome.text;
  EXPECT_THAT(outcome.text,
              HasSubstr("quality cost: mean KL 0.01 nats a token, perplexity +0.1%, 12 of 13 "
                        "likeliest tokens equal, generated tokens part at 3 of 8"));
  const ledger::TokenCheck& tokens = *outcome.record->verdict->tokens;
  EXPECT_FALSE(tokens.identical);
  EXPECT_EQ(tokens.first_divergence->base_token, 21);
  EXPECT_EQ(tokens.first_divergence->arm_token, 22);
  EXPECT_NEAR(*tokens.first_divergence->margin, 3.5, 1e-6);
  EXPECT_NEAR(*tokens.mean_kl, 0.01, 1e-12);
  EXPECT_NEAR(*tokens.perplexity_change, 0.001, 1e-12);
  EXPECT_EQ(tokens.extra["quality"]["largest_kl"], 0.02);
  EXPECT_EQ(outcome.record->idea.scope.tokens_policy, "may-diverge");
  EXPECT_THAT(outcome.record->idea.reproduce.queue_text, HasSubstr("tokens: may-diverge"));
  EXPECT_THAT(markdown_page(QueueOutcome{"q", {outcome}}), HasSubstr("- Quality cost: mean KL"));
}

TEST_F(QualityTest, EqualTokensStillHaveACost) {
  store_noise();
  const Outcome outcome =
      run_one(ab_experiment("close", "variant=v2,speed=0.9,kl=0.001", kMayDiverge));
  ASSERT_EQ(outcome.verdict(), Verdict::kLost) << outcome.text;
  EXPECT_TRUE(outcome.record->verdict->tokens->identical);
  EXPECT_THAT(outcome.text, HasSubstr("the 8 generated tokens are equal"));
}

TEST_F(QualityTest, IdenticalIsThePolicyUnlessSaidOtherwise) {
  store_noise();
  const Outcome outcome = run_one(ab_experiment("strict", "variant=v2,speed=1.5"));
  EXPECT_THAT(outcome.text, Not(HasSubstr("quality")));
  EXPECT_FALSE(outcome.record->verdict->tokens->mean_kl.has_value());
}

TEST_F(QualityTest, AnArmThatBreaksWhileItIsComparedIsBroke) {
  const Outcome outcome = run_one(ab_experiment("breaks", "variant=v2,faultq=crash", kMayDiverge));
  ASSERT_EQ(outcome.verdict(), Verdict::kBroke) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("comparing what the arms predict broke: signal 11"));
  EXPECT_EQ(outcome.record->rounds.size(), 2u) << "the rounds are kept";
}

TEST_F(QualityTest, NoRoomForBothArmsIsNoVerdict) {
  const Outcome outcome = run_one(ab_experiment("large", "variant=v2,faultq=refuse", kMayDiverge));
  EXPECT_EQ(outcome.kind, OutcomeKind::kFailed);
  EXPECT_THAT(outcome.text, HasSubstr("comparing what the arms predict: needs 2 GiB"));
  EXPECT_THAT(read().entries, IsEmpty());
}

TEST_F(QualityTest, ARunnerThatCannotCompareIsTold) {
  class Plain : public FakeRunner {
    bool compares_quality() const override { return false; }
  } plain;
  const auto queue = parse_queue(queue_text(ab_experiment("x", "variant=v2", kMayDiverge)), "q");
  ASSERT_TRUE(queue.ok());
  const auto result = run_queue(*queue, plain, *store_, options_, progress_);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->exit_code(), 2);
  EXPECT_THAT(result->experiments[0].text, HasSubstr("needs a runner that can compare"));
}

}  // namespace
}  // namespace reckon::experiment
