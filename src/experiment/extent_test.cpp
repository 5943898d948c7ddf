#include "experiment/extent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ExtentTest : public LedgerTest {
 protected:
  static Queue queue() {
    const std::string text = queue_text(
        aa_experiment("floor", 20) + ab_experiment("usual", "variant=v2", "    claim: \"+2%\"\n") +
            ab_experiment("large", "variant=v3", "    only: full\n"),
        6);
    return *parse_queue(text, "test.yaml");
  }

  static std::vector<std::string> ids(const Queue& queue) {
    std::vector<std::string> names;
    for (const Experiment& experiment : queue.experiments) names.push_back(experiment.id);
    return names;
  }
};

TEST_F(ExtentTest, LeavesOutWhatIsForTheFullQueueAlone) {
  EXPECT_THAT(ids(with_extent(queue(), Extent::kUsual)), ElementsAre("floor", "usual"));
  EXPECT_THAT(ids(with_extent(queue(), Extent::kQuick)), ElementsAre("usual"));
  EXPECT_THAT(ids(with_extent(queue(), Extent::kFull)), ElementsAre("floor", "usual", "large"));
}

TEST_F(ExtentTest, SaysWhatAQuickRoundCannotConclude) {
  const Queue quick = with_extent(queue(), Extent::kQuick);
  const Experiment& one = quick.experiments.at(0);
  EXPECT_EQ(one.rounds, 1);
  EXPECT_EQ(one.pairs, 3);
  EXPECT_FALSE(one.claim.has_value());
  EXPECT_THAT(one.lengthened, HasSubstr("cannot end WON, LOST or NEUTRAL"));
  const QueueCheck checked = check_queue(quick, runner_, *store_);
  EXPECT_EQ(checked.experiments.at(0).kind, CheckedExperiment::Kind::kWouldRun);
}

TEST_F(ExtentTest, RefusesAnotherWordThanFull) {
  const auto queue = parse_queue(
      queue_text(ab_experiment("usual", "variant=v2", "    only: fast\n"), 6), "test.yaml");
  ASSERT_FALSE(queue.ok());
  EXPECT_THAT(queue.error().message, HasSubstr("'only' is 'full' or absent"));
}

}  // namespace
}  // namespace reckon::experiment
