#include "experiment/auto_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "experiment/markdown.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::HasSubstr;

class AutoPairsTest : public LedgerTest {
 protected:
  static constexpr int kPairs = 6;

  void SetUp() override {
    ASSERT_EQ(run_one(aa_experiment("floor", 20), kPairs).kind, OutcomeKind::kFloor);
  }

  // What the stored noise lets two rounds of six pairs see, as a share.
  double seen() {
    const auto checked = check(ab_experiment("any", "variant=v9"), TooShort::kRefuse);
    EXPECT_TRUE(checked[0].smallest_effect.has_value());
    return checked[0].smallest_effect.value_or(1);
  }

  static std::string claiming(const std::string& id, double share) {
    return ab_experiment(id, "variant=v2,jitter=0.002",
                         fmt::format("    claim: \"+{:.6f}%\"\n", share * 100));
  }

  std::vector<CheckedExperiment> check(const std::string& experiments, TooShort too_short) {
    const Result<Queue> queue = parse_queue(queue_text(experiments, kPairs), "test.yaml");
    EXPECT_TRUE(queue.ok());
    return check_queue(*queue, runner_, *store_, too_short).experiments;
  }
};

TEST_F(AutoPairsTest, LeavesAloneWhatIsLongEnough) {
  const auto checked = check(claiming("easy", 1.5 * seen()), TooShort::kLengthen);
  ASSERT_EQ(checked.size(), 1U);
  EXPECT_EQ(checked[0].kind, CheckedExperiment::Kind::kWouldRun);
  EXPECT_EQ(checked[0].rounds, 2);
}

TEST_F(AutoPairsTest, AddsRoundsWhereTheyDo) {
  const std::string experiment = claiming("close", 0.75 * seen());  // 4 to 6 rounds
  const auto refused = check(experiment, TooShort::kRefuse);
  EXPECT_EQ(refused[0].kind, CheckedExperiment::Kind::kWouldRefuse);
  EXPECT_THAT(refused[0].text, HasSubstr("rounds, which --auto-pairs would choose"));
  const auto checked = check(experiment, TooShort::kLengthen);
  ASSERT_EQ(checked.size(), 1U);
  EXPECT_EQ(checked[0].kind, CheckedExperiment::Kind::kWouldRun) << checked[0].text;
  EXPECT_GT(checked[0].rounds, 2);
  EXPECT_LE(*checked[0].smallest_effect, 0.75 * seen());
  EXPECT_THAT(checked[0].notes, testing::Contains(HasSubstr("lengthened from 2 rounds of 6")));

  options_.auto_pairs = true;
  const QueueOutcome outcome = run(queue_text(experiment, kPairs));
  ASSERT_EQ(outcome.experiments.size(), 1U);
  EXPECT_EQ(outcome.experiments[0].kind, OutcomeKind::kVerdict) << outcome.experiments[0].text;
  EXPECT_EQ(outcome.experiments[0].record->rounds.size(), static_cast<size_t>(checked[0].rounds));
  const std::string design = outcome.experiments[0].design;
  EXPECT_EQ(design, checked[0].notes.front());
  EXPECT_THAT(text_table(outcome), HasSubstr("  - " + design + "\n"));
  EXPECT_THAT(markdown_page(outcome), HasSubstr(design));
  EXPECT_EQ(to_json(outcome)["experiments"][0]["design"], design);
}

TEST_F(AutoPairsTest, AddsPairsAndTheirFloorWhereRoundsDoNot) {
  const auto checked = check(claiming("small", 0.5 * seen()), TooShort::kLengthen);
  ASSERT_EQ(checked.size(), 2U);
  EXPECT_EQ(checked[0].id, "small-floor");
  EXPECT_EQ(checked[0].kind, CheckedExperiment::Kind::kWouldRun) << checked[0].text;
  EXPECT_EQ(checked[0].rounds, 20);
  EXPECT_GT(checked[0].pairs, kPairs);
  EXPECT_EQ(checked[1].id, "small");
  EXPECT_EQ(checked[1].pairs, checked[0].pairs);
  EXPECT_THAT(checked[1].notes,
              testing::Contains(HasSubstr("20 of them once this queue's own are measured")));
}

}  // namespace
}  // namespace reckon::experiment
