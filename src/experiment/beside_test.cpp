#include "experiment/beside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Six pairs, the arm better in all but one; the base falls from pair to pair.
ledger::MeasuredBody falling_round(double level) {
  ledger::MeasuredBody measured;
  for (int i = 0; i < 6; ++i) {
    const double base = level - i;
    measured.round.pairs.push_back(
        {base, base * (i == 2 ? 0.999 : 1.01 + 0.001 * i), i % 2 == 1, false});
  }
  measured.round.pairs.push_back({1, 1000, false, true});
  return measured;
}

TEST(Beside, KnownValuesOfTwoRounds) {
  measure::Decision decision;
  decision.p_value = 0.00042;
  ledger::Numbers numbers;
  ASSERT_TRUE(add_beside({falling_round(100), falling_round(120)}, measure::Better::kHigher,
                         decision, numbers)
                  .ok());
  EXPECT_EQ(numbers.extra["beside"]["pairs"], 12);
  EXPECT_EQ(numbers.extra["beside"]["better"], 10);
  // scipy.stats.binomtest(10, 12).pvalue. The two losses have the lowest ranks.
  EXPECT_NEAR(numbers.extra["beside"]["sign_p"].get<double>(), 0.03857421875, 1e-12);
  EXPECT_LT(numbers.extra["beside"]["wilcoxon_p"].get<double>(), 0.0025);
  EXPECT_LT(numbers.extra["drift"]["p"].get<double>(), 1e-4);
  EXPECT_THAT(beside_text(numbers),
              AllOf(HasSubstr("beside the verdict: p 0.00042; of 12 pairs 10"),
                    HasSubstr("sign test p 0.039, Wilcoxon p 0.00")));
  EXPECT_THAT(beside_text(numbers, 0.0013), HasSubstr("p 0.00042 (0.0013 after Holm)"));
  EXPECT_THAT(drift_text(numbers), HasSubstr("the base arm drifted by -0.9"));
}

TEST(Beside, SaysNothingOfNothing) {
  EXPECT_EQ(beside_text(ledger::Numbers{}), "");
  EXPECT_EQ(drift_text(ledger::Numbers{}), "");
  ledger::Numbers odd;
  odd.extra = {{"p_value", "high"}, {"beside", 3}, {"drift", {{"p", 0.5}, {"per_pair", 0.1}}}};
  EXPECT_EQ(beside_text(odd), "");
  ledger::Numbers single;
  single.extra["beside"] = {{"pairs", 1}, {"better", 0}, {"sign_p", 1}, {"wilcoxon_p", 1}};
  EXPECT_THAT(beside_text(single), HasSubstr("of 1 pair 0 better"));
  EXPECT_EQ(drift_text(odd), "");
}

using BesideTest = LedgerTest;

TEST_F(BesideTest, AQueueIsCorrectedAsAWhole) {
  store_noise();
  const QueueOutcome outcome = run(queue_text(ab_experiment("faster", "variant=v2,speed=1.2") +
                                              ab_experiment("void", "variant=v1,speed=2") +
                                              ab_experiment("same", "variant=v3,jitter=0.002")));
  ASSERT_EQ(outcome.experiments.size(), 3U);
  ASSERT_TRUE(outcome.experiments[0].holm_p && outcome.experiments[2].holm_p);
  EXPECT_FALSE(outcome.experiments[1].holm_p.has_value());
  const auto p = [&](size_t i) {
    return outcome.experiments[i].record->verdict->numbers->extra["p_value"].get<double>();
  };
  EXPECT_NEAR(*outcome.experiments[0].holm_p, 2 * p(0), 1e-15);
  EXPECT_EQ(*outcome.experiments[2].holm_p, p(2));
  EXPECT_EQ(to_json(outcome)["experiments"][2]["holm_p"].get<double>(), p(2));
}

}  // namespace
}  // namespace reckon::experiment
