#include "cli/report_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/report_parsing.h"

namespace reckon::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

HtmlNode drawn(const Plot& plot) {
  HtmlNode page;
  const std::string markup = "<!DOCTYPE html>\n" + plot_figure(plot).markup();
  EXPECT_EQ(HtmlReader::read(markup, page), "");
  return page;
}

double number(const HtmlNode& node, const char* name) {
  return std::stod(node.attributes.at(name));
}

std::vector<std::string> percents(const std::vector<double>& ticks) {
  std::vector<std::string> texts;
  for (const double tick : ticks) {
    texts.push_back(std::to_string(std::lround(std::expm1(tick) * 1e4)));
  }
  return texts;
}

Plot two_rounds() {
  Plot plot;
  plot.rounds = {{{{0.02, false}, {0.04, true}}, 0.03, true}, {{{0.01, true}}, 0.01, false}};
  plot.effect = 0.02;
  plot.interval = Span{0.015, 0.025};
  plot.band = Span{-0.01, 0.01};
  plot.claim = 0.03;
  plot.warmups = 2;
  return plot;
}

TEST(ReportPlot, LabelsRoundPercents) {
  EXPECT_THAT(percents(plot_ticks(-0.041, 0.021, 6)),
              testing::ElementsAre("-400", "-200", "0", "200"));
  // Wide ranges go by ratios: -50%, 0, +100%, +400%, +900%.
  EXPECT_THAT(percents(plot_ticks(-1, 2.5, 6)),
              testing::ElementsAre("-5000", "0", "10000", "40000", "90000"));
  EXPECT_THAT(plot_ticks(-1e-9, 1e-9, 6), testing::Contains(0.0));
}

TEST(ReportPlot, DrawsEveryPairAndRound) {
  const HtmlNode page = drawn(two_rounds());
  const HtmlNode* svg = page.with_class("plot").at(0);
  EXPECT_EQ(svg->all("circle").size(), 3u);
  EXPECT_EQ(svg->with_class("hollow").size(), 2u);
  EXPECT_EQ(svg->with_class("round").size(), 2u);
  EXPECT_EQ(svg->with_class("late").size(), 1u);
  EXPECT_EQ(svg->all("circle").at(1)->text, "round 1, pair 2: +4.1%, arm first");
  // Better is higher up; a round lies between its pairs.
  const double low = number(*svg->all("circle").at(0), "cy");
  const double high = number(*svg->all("circle").at(1), "cy");
  const double round = number(*svg->with_class("round").at(0), "y1");
  EXPECT_LT(high, round);
  EXPECT_LT(round, low);
  const HtmlNode* band = svg->with_class("band").at(0);
  const double zero = number(*svg->with_class("zero").at(0), "y1");
  EXPECT_LT(number(*band, "y"), zero);
  EXPECT_GT(number(*band, "y") + number(*band, "height"), zero);
}

TEST(ReportPlot, SaysInWordsWhatItDraws) {
  const HtmlNode page = drawn(two_rounds());
  const HtmlNode* svg = page.with_class("plot").at(0);
  EXPECT_EQ(svg->attributes.at("role"), "img");
  EXPECT_FALSE(svg->all("title").at(0)->text.empty());
  EXPECT_EQ(svg->all("desc").at(0)->text,
            "round 1: +3.0%, 2 pairs from +2.0% to +4.1%; round 2: +1.0%, 1 pair from +1.0% to "
            "+1.0%; all rounds: +2.0%");
  const std::string legend = page.with_class("legend").at(0)->text;
  for (const char* part : {"base first", "arm first", "noise band ±1.0%", "claim +3.0%",
                           "90% interval +1.5% to +2.5%", "does not count"}) {
    EXPECT_THAT(legend, HasSubstr(part));
  }
  EXPECT_THAT(page.all("figcaption").at(0)->text, HasSubstr("2 warm-up pairs not drawn"));
}

TEST(ReportPlot, LeavesOutALineThatWouldFlattenThePicture) {
  Plot plot = two_rounds();
  plot.claim = 1;
  plot.band.reset();
  const HtmlNode page = drawn(plot);
  EXPECT_TRUE(page.with_class("plot").at(0)->with_class("claim").empty());
  EXPECT_THAT(page.with_class("legend").at(0)->text,
              testing::AllOf(HasSubstr("beyond the picture"), Not(HasSubstr("noise band"))));
}

TEST(ReportPlot, DrawsRoundsThatDoNotDiffer) {
  Plot plot;
  plot.rounds.assign(3, {{{0, false}, {0, true}}, 0, true});
  const HtmlNode page = drawn(plot);
  EXPECT_EQ(page.all("circle").size(), 8u);  // two of the legend
  for (const HtmlNode* circle : page.with_class("plot").at(0)->all("circle")) {
    EXPECT_TRUE(std::isfinite(number(*circle, "cy")));
  }
}

}  // namespace
}  // namespace reckon::cli
