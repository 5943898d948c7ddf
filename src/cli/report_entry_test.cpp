#include "cli/report_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <set>

#include "cli/report_index.h"
#include "cli/report_parsing.h"
#include "cli/report_style.h"
#include "cli/report_testing.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ReportPages : public testing::Test {
 protected:
  ReportPages() {
    for (const ledger::Entry& entry : ledger_.entries) {
      entries_.push_back(&entry);
      context_.shown.insert(entry.id);
    }
    for (const ledger::Entry& entry : ledger_.entries) {
      context_.entries.emplace(entry.id, &entry);
      summaries_.push_back(ledger::summary_of(entry));
    }
    chains_.emplace(summaries_);
    context_.chains = &*chains_;
    facets_.emplace(entries_);
    context_.facets = &*facets_;
    context_.metrics["prefill_tok_per_s"] = {"tok/s", true};
  }

  HtmlNode page(char letter) {
    HtmlNode page;
    EXPECT_EQ(HtmlReader::read(entry_document(*ledger_.find(test_id(letter)), context_), page), "")
        << letter;
    return page;
  }
  // Every page of the report, by file.
  std::map<std::string, std::string> pages() {
    std::map<std::string, std::string> pages;
    const auto take = [&](const std::string& file, std::string_view text) -> Status {
      EXPECT_TRUE(pages.emplace(file, text).second) << file;
      return {};
    };
    EXPECT_TRUE(make_lists(entries_, context_, take).ok());
    for (const ledger::Entry* entry : entries_) {
      EXPECT_TRUE(take(entry_file(entry->id), entry_document(*entry, context_)).ok());
    }
    EXPECT_TRUE(take("index.html", index_document(entries_, context_)).ok());
    return pages;
  }

  ledger::Ledger ledger_ = report_ledger();
  std::vector<ledger::Summary> summaries_;
  std::optional<ledger::Chains> chains_;
  std::vector<const ledger::Entry*> entries_;
  std::optional<FacetNames> facets_;
  ReportContext context_;
};

std::vector<std::string> sections_of(const HtmlNode& page) {
  std::vector<std::string> ids;
  for (const HtmlNode* section : page.all("section")) ids.push_back(section->attributes.at("id"));
  return ids;
}

TEST_F(ReportPages, TellAFinishedEntryInOrder) {
  const HtmlNode entry = page('a');
  EXPECT_THAT(sections_of(entry),
              ElementsAre("rounds", "why", "numbers", "dispatch", "tokens", "memory", "scope",
                          "environment", "history", "reproduce"));
  EXPECT_EQ(entry.all("h1").at(0)->text, "Walk weight-row tiles in bands of 8");
  EXPECT_THAT(entry.with_class("verdict").at(0)->text,
              AllOf(HasSubstr("LOST"), HasSubstr("-3.8% prefill_tok_per_s"),
                    HasSubstr("noise band ±1.0% from 20 A/A rounds"), HasSubstr("side effects")));
  EXPECT_EQ(entry.by_id("rounds")->with_class("plot").at(0)->all("circle").size(), 12u);
  EXPECT_EQ(entry.by_id("rounds")->all("tr").size(), 3u + 15u);
  EXPECT_THAT(entry.by_id("why")->text,
              AllOf(HasSubstr("the occupancy falls"), HasSubstr("chunk >= 4096"),
                    HasSubstr("More tokens a chunk")));
  EXPECT_EQ(entry.by_id("dispatch")->with_class("minus").size(), 1u);
  EXPECT_EQ(entry.by_id("dispatch")->with_class("plus").size(), 1u);
  EXPECT_EQ(entry.by_id("dispatch")->with_class("side").size(), 1u);
  EXPECT_THAT(entry.by_id("memory")->text, AllOf(HasSubstr("4.00 GB"), HasSubstr("4.06 GB")));
  EXPECT_THAT(entry.by_id("reproduce")->text,
              HasSubstr("reckon ledger show rk-aaaaaaaaaaaa --queue > again.yaml"));
}

TEST_F(ReportPages, LinkEntriesThatTheyName) {
  std::set<std::string> targets;
  const HtmlNode entry = page('a');
  for (const HtmlNode* link : entry.all("a")) targets.insert(link->attributes.at("href"));
  for (const char letter : {'e', 'f'}) {
    EXPECT_EQ(targets.count("../" + entry_file(test_id(letter))), 1u) << letter;
  }
  EXPECT_EQ(targets.count("https://example.org/roofline"), 1u);
  context_.shown.erase(test_id('e'));  // a filter left it out
  for (const HtmlNode* link : page('a').all("a")) {
    EXPECT_NE(link->attributes.at("href"), "../" + entry_file(test_id('e')));
  }
}

TEST_F(ReportPages, GiveNoNumberWhereNoneIsAResult) {
  for (const char letter : {'b', 'c', 'j'}) {
    const HtmlNode entry = page(letter);
    EXPECT_TRUE(entry.with_class("plot").empty());
    EXPECT_EQ(entry.by_id("numbers"), nullptr);
    EXPECT_THAT(entry.all("main").at(0)->text, Not(HasSubstr("%"))) << letter;
    EXPECT_THAT(entry.by_id("rounds")->text, HasSubstr("No number"));
  }
  EXPECT_THAT(page('c').by_id("tokens")->text, HasSubstr("position 7"));
  EXPECT_THAT(page('j').by_id("memory")->text,
              AllOf(HasSubstr("Allowed"), HasSubstr("activations: ffn")));
}

TEST_F(ReportPages, SayWhatIsMissingOrNotMeasuredHere) {
  EXPECT_THAT(page('c').with_class("notices").at(0)->text, HasSubstr("Unfinished: no mechanism"));
  EXPECT_THAT(page('c').by_id("why")->text, HasSubstr("counts as unfinished"));
  const HtmlNode reported = page('h');
  EXPECT_THAT(reported.with_class("notices").at(0)->text,
              HasSubstr("Reported, not measured here: notes of its authors"));
  EXPECT_THAT(reported.with_class("verdict").at(0)->text, HasSubstr("(as reported)"));
  EXPECT_THAT(page('g').with_class("notices").at(0)->text, HasSubstr("Overturned: the clock"));
  EXPECT_THAT(page('e').with_class("quality").at(0)->text, HasSubstr("mean KL 0.00231"));
  EXPECT_THAT(page('f').with_class("notices").at(0)->text,
              HasSubstr("Superseded by rk-eeeeeeeeeeee: measured with all rows"));
}

TEST_F(ReportPages, ShowHostileTextAsText) {
  const HtmlNode entry = page('l');
  EXPECT_TRUE(entry.all("script").empty());
  EXPECT_THAT(entry.all("h1").at(0)->text, HasSubstr("<script>alert(\"1\")</script>"));
  EXPECT_THAT(search_data(entries_), Not(HasSubstr("\x1b")));
}

TEST_F(ReportPages, AreWellFormedAndLinkOnlyWhatThereIs) {
  const std::map<std::string, std::string> pages = this->pages();
  for (const auto& [file, text] : pages) {
    HtmlNode page;
    ASSERT_EQ(HtmlReader::read(text, page), "") << file;
    EXPECT_EQ(page.all("h1").size(), 1u) << file;
    for (const HtmlNode* link : page.all("a")) {
      std::string target = link->attributes.at("href");
      if (target.starts_with("https://") || target.ends_with(".txt")) continue;
      if (target.starts_with('#')) {
        EXPECT_NE(page.by_id(target.substr(1)), nullptr) << file << " " << target;
        continue;
      }
      const std::string folder = file.substr(0, file.find('/') + 1);
      target = target.starts_with("../") ? target.substr(3) : folder + target;
      EXPECT_EQ(pages.count(target), 1u) << file << " -> " << target;
    }
  }
}

// A phone is 390 pixels wide, and the page's edges take 28 of them.
constexpr double kPhonePixels = 362;

// What could make an element wider than a phone: a width of its own in pixels, or a table that
// neither lies in a box that scrolls nor is one of those that become lists there (class entries).
std::vector<std::string> too_wide_for_a_phone(const HtmlNode& node, bool scrolls = false) {
  std::vector<std::string> found;
  for (const HtmlNode& child : node.children) {
    const auto attribute = [&](const char* name) {
      const auto at = child.attributes.find(name);
      return at == child.attributes.end() ? std::string() : at->second;
    };
    const std::string width = attribute("width");
    if (!width.ends_with('%') && std::strtod(width.c_str(), nullptr) > kPhonePixels) {
      found.push_back(child.tag + " of width " + width);
    }
    if (!attribute("style").empty()) found.push_back(child.tag + " with a style of its own");
    const bool inside = scrolls || attribute("class") == "scroll";
    if (child.tag == "table" && !inside && attribute("class") != "entries") {
      found.push_back("a table outside a box that scrolls");
    }
    for (std::string& below : too_wide_for_a_phone(child, inside)) found.push_back(below);
  }
  return found;
}

TEST_F(ReportPages, FitAPhone) {
  for (const auto& [file, text] : pages()) {
    HtmlNode page;
    ASSERT_EQ(HtmlReader::read(text, page), "") << file;
    EXPECT_THAT(too_wide_for_a_phone(page), testing::IsEmpty()) << file;
  }
  // Conditions of @media stand in brackets.
  const std::string style(kReportStyle);
  const std::regex width(R"([;{](?:min-)?width:([0-9.]+)px)");
  for (std::sregex_iterator at(style.begin(), style.end(), width), end; at != end; ++at) {
    EXPECT_LE(std::stod((*at)[1]), kPhonePixels) << (*at)[0];
  }
  EXPECT_THAT(style, HasSubstr(".scroll{overflow-x:auto"));
}

TEST_F(ReportPages, CutListsByVerdictWithoutAScript) {
  const std::map<std::string, std::string> pages = this->pages();
  const auto rows = [&](const std::string& file) {
    HtmlNode page;
    EXPECT_EQ(pages.count(file), 1u) << file;
    EXPECT_EQ(HtmlReader::read(pages.at(file), page), "") << file;
    EXPECT_TRUE(page.all("script").empty());
    return page.all("tbody").at(0)->all("tr").size();
  };
  EXPECT_EQ(rows("lists/all.html"), 11u);
  EXPECT_EQ(rows("lists/all--lost.html"), 2u);  // reported ones are not among them
  EXPECT_EQ(rows("lists/all--reported.html"), 1u);
  EXPECT_EQ(rows("lists/all--unfinished.html"), 4u);
  EXPECT_EQ(rows("lists/switch-prefill.tile_order--won.html"), 1u);
  EXPECT_EQ(rows("lists/device-some-gpu-sm_90-132-sms-141-gib.html"), 9u);
}

TEST_F(ReportPages, PageLongLists) {
  ledger_.entries.assign(2 * kListRows + 1, finished_entry());
  entries_.clear();
  for (const ledger::Entry& entry : ledger_.entries) entries_.push_back(&entry);
  std::vector<std::string> files;
  const auto take = [&](const std::string& file, std::string_view) -> Status {
    files.push_back(file);
    return files.size() == 5 ? Status(failed("disk full")) : Status();
  };
  EXPECT_FALSE(make_lists(entries_, context_, take).ok());
  EXPECT_THAT(files, ElementsAre("lists/all.html", "lists/all--2.html", "lists/all--3.html",
                                 "lists/all--lost.html", "lists/all--lost--2.html"));
}

TEST_F(ReportPages, CountWhatTheIndexShows) {
  HtmlNode index;
  ASSERT_EQ(HtmlReader::read(index_document(entries_, context_), index), "");
  EXPECT_THAT(index.all("p").at(0)->text, HasSubstr("11 entries: 10 measured here, 1 reported"));
  EXPECT_THAT(index.with_class("chips").at(0)->text,
              AllOf(HasSubstr("WON 1"), HasSubstr("LOST 2"), HasSubstr("reported 1")));
  EXPECT_NE(index.by_id("by-switch"), nullptr);
  EXPECT_EQ(index.by_id("search-form")->attributes.count("hidden"), 1u);  // the script shows it

  entries_.clear();
  HtmlNode empty;
  ASSERT_EQ(HtmlReader::read(index_document({}, context_), empty), "");
  EXPECT_THAT(empty.all("p").at(0)->text, HasSubstr("0 entries"));
}

TEST_F(ReportPages, HaveATwinWithEveryPair) {
  const std::string text = pairs_text(*ledger_.find(test_id('a')), context_);
  EXPECT_THAT(text, HasSubstr("round 1       -4.4%* "));
  EXPECT_EQ(pairs_text(*ledger_.find(test_id('b')), context_), "");
  EXPECT_EQ(pairs_text(*ledger_.find(test_id('h')), context_), "");
}

TEST(ReportParts, NameFilesWithoutCollisions) {
  ledger::Entry upper = finished_entry();
  ledger::Entry lower = finished_entry();
  upper.idea.scope.switch_key = "Tile/Order";
  lower.idea.scope.switch_key = "tile order";
  const FacetNames names({&upper, &lower});
  EXPECT_EQ(names.name(Facet::kSwitch, "Tile/Order"), "switch-tile-order");
  EXPECT_EQ(names.name(Facet::kSwitch, "tile order"), "switch-tile-order-2");
}

}  // namespace
}  // namespace reckon::cli
