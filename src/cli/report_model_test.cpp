#include "cli/report_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report_testing.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(ReportModel, CountsEachEntryOnce) {
  EXPECT_EQ(group_of(finished_entry()), Group::kLost);
  EXPECT_EQ(group_of(superseded_entry()), Group::kLost);  // its verdict still stands
  EXPECT_EQ(group_of(overturned_entry()), Group::kOverturned);
  EXPECT_EQ(group_of(reported_entry()), Group::kReported);
  EXPECT_EQ(group_of(floor_entry()), Group::kFloor);
  EXPECT_EQ(group_of(open_entry()), Group::kOpen);
}

TEST(ReportModel, GivesNoNumberWhereNoneIsAResult) {
  for (const ledger::Entry& entry : {void_entry(), broke_entry(), too_large_entry()}) {
    EXPECT_EQ(effect_of(entry), "");
    EXPECT_FALSE(plot_of(entry, {}).has_value());
    EXPECT_THAT(sentence_of(entry), Not(HasSubstr("%")));
  }
  EXPECT_EQ(sentence_of(void_entry()), "VOID: something else ran on the machine");
  EXPECT_THAT(sentence_of(finished_entry()), StartsWith("LOST: -3.8% prefill_tok_per_s"));
}

TEST(ReportModel, NeverCallsReportedFiguresMeasured) {
  const std::vector<Notice> notices = notices_of(reported_entry());
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].title, "Reported, not measured here");
  EXPECT_THAT(marks_of(reported_entry()), ElementsAre("reported"));
  // Its rounds are known by their values alone.
  const std::optional<Plot> plot = plot_of(reported_entry(), {});
  ASSERT_TRUE(plot.has_value());
  EXPECT_EQ(plot->rounds.size(), 2u);
  EXPECT_THAT(plot->rounds[0].pairs, IsEmpty());
}

TEST(ReportModel, NamesTheSuccessorOnlyWhereItSupersedes) {
  ledger::Entry entry = superseded_entry();
  ASSERT_FALSE(notices_of(entry).empty());
  EXPECT_EQ(notices_of(entry)[0].title, "Superseded");
  EXPECT_EQ(notices_of(entry)[0].entry, entry.superseded_by);
  entry.status = ledger::EntryStatus::kReopened;  // later, and by nobody's entry
  entry.status_reason = "new driver";
  const std::vector<Notice> notices = notices_of(entry);
  ASSERT_GE(notices.size(), 2u);
  EXPECT_EQ(notices[0].title, "Reopened");
  EXPECT_EQ(notices[0].text, "new driver");
  EXPECT_EQ(notices[0].entry, "");
  EXPECT_EQ(notices[1].title, "Superseded");
  EXPECT_EQ(notices[1].entry, entry.superseded_by);
}

TEST(ReportModel, SumsUpReportedSeries) {
  ledger::Entry entry;
  entry.figures = {{"series",
                    {{{"name", "sort/8"},
                      {"unit", "ms"},
                      {"median", 12.499999999999},
                      {"samples", {12.4, 12.499999999999, 12.6}}},
                     {{"name", "none"}}}}};
  EXPECT_THAT(reported_series(entry), ElementsAre("sort/8: median 12.50 ms of 3 samples"));
  entry.figures["effect"] = -0.039;
  EXPECT_THAT(reported_series(entry),
              ElementsAre("sort/8: median 12.50 ms of 3 samples", "effect, of the medians: -3.9%"));
  entry.imported = true;
  EXPECT_EQ(sentence_of(entry), "No verdict was reported");
  EXPECT_EQ(arms_of(entry), "figures");
}

TEST(ReportModel, CallsAVerdictWithoutAMechanismUnfinished) {
  ledger::Entry entry = finished_entry();
  EXPECT_THAT(notices_of(entry), IsEmpty());
  entry.verdict->mechanism.clear();
  ASSERT_EQ(notices_of(entry).size(), 1u);
  EXPECT_EQ(notices_of(entry)[0].title, "Unfinished");
  EXPECT_EQ(notices_of(entry)[0].text, "no mechanism");
  EXPECT_THAT(marks_of(entry), ElementsAre("unfinished"));
  EXPECT_FALSE(is_unfinished(overturned_entry()));
}

TEST(ReportModel, ShowsWhatAnArmThatMayDivergeCosts) {
  EXPECT_EQ(quality_of(diverging_entry()),
            "tokens part at position 383; mean KL 0.00231 nats a token; perplexity +0.12%");
  ledger::Entry entry = diverging_entry();
  entry.verdict->tokens->mean_kl.reset();
  entry.verdict->tokens->perplexity_change.reset();
  EXPECT_THAT(quality_of(entry), HasSubstr("not measured"));
  entry.verdict->tokens.reset();
  EXPECT_EQ(quality_of(entry), "not measured");
  EXPECT_EQ(quality_of(finished_entry()), "");
}

TEST(ReportModel, PlotsCountedPairsInLogUnits) {
  const std::optional<Plot> plot = plot_of(finished_entry(), {});
  ASSERT_TRUE(plot.has_value());
  ASSERT_EQ(plot->rounds.size(), 2u);
  EXPECT_EQ(plot->rounds[0].pairs.size(), 6u);
  EXPECT_EQ(plot->warmups, 2);
  EXPECT_NEAR(plot->rounds[0].pairs[0].log, -0.045, 1e-9);
  EXPECT_NEAR(*plot->effect, -0.039, 1e-9);
  EXPECT_NEAR(plot->band->high, 0.01, 1e-9);

  ledger::Entry entry = finished_entry();
  entry.verdict->numbers->higher_is_better = false;
  EXPECT_NEAR(plot_of(entry, {})->rounds[0].pairs[0].log, 0.045, 1e-9);
  entry.verdict->rounds.pop_back();
  EXPECT_FALSE(plot_of(entry, {})->rounds[1].counted);
  entry.verdict->numbers->noise_rounds = 3;  // a band of so few rounds is not shown
  EXPECT_FALSE(plot_of(entry, {})->band.has_value());
  EXPECT_FALSE(plot_of(entry, {})->interval.has_value());
}

TEST(ReportModel, KnowsWhichWayIsBetterWithoutAVerdict) {
  ledger::Entry entry = open_entry();
  EXPECT_GT(plot_of(entry, {{"prefill_tok_per_s", {"tok/s", true}}})->rounds[0].log, 0);
  EXPECT_LT(plot_of(entry, {{"prefill_tok_per_s", {"tok/s", false}}})->rounds[0].log, 0);
  entry.rounds[0].round.median_log = -0.004;  // the arm's value is larger, and worse
  EXPECT_LT(plot_of(entry, {})->rounds[0].log, 0);
}

}  // namespace
}  // namespace reckon::cli
