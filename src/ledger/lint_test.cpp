#include "ledger/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

// Entries of moe.expert_tile at chunks 512 and 2048, LOST, and one that was overturned.
class LintTest : public testing::Test {
 protected:
  LintTest() {
    for (const int64_t chunk : {512, 2048, 4096}) {
      Scope scope = test::expert_tile_scope();
      scope.chunk = chunk;
      const Event idea = test::idea(scope);
      events_.push_back(idea);
      events_.push_back(test::verdict(idea.entry, test::lost()));
      ids_.push_back(idea.entry);
    }
    StatusBody body;
    body.reason = "the clock was wrong";
    events_.push_back(test::status(EventType::kOverturned, ids_[2], body));
    open_ = test::idea(test::floor_scope());
    events_.push_back(open_);
  }

  LintReport lint(const std::vector<Citation>& citations) const {
    LintReport report;
    lint_citations(fold(events_), citations, report);
    return report;
  }
  LintReport comment(const std::string& text) const {
    return lint(citations_in_comments(text, "src/tile.cpp"));
  }
  LintReport rules(const std::string& text) const {
    return lint(citations_in_rules(text, "rules/tile.yaml").value());
  }
  std::string id(size_t i) const { return ids_[i]; }

  std::vector<Event> events_;
  std::vector<std::string> ids_;
  Event open_;
};

TEST_F(LintTest, ACommentCitesAnEntryThatStands) {
  const LintReport report =
      comment("// why: ledger: " + id(0) + ".\nint x;\n# ledger: " + id(1).substr(0, 9) +
              "\n// ledger: unmeasured\n" + "reckon::ledger::fold(x); // a ledger: of sorts\n");
  EXPECT_THAT(report.errors, IsEmpty());
  EXPECT_EQ(report.citations, 2U);
  EXPECT_EQ(report.unmeasured, 1U);
}

TEST_F(LintTest, AMissingEntryFails) {
  EXPECT_THAT(comment("\n// ledger: rk-222222222222").errors,
              ElementsAre("src/tile.cpp:2: comment cites rk-222222222222: no entry "
                          "'rk-222222222222' in this ledger"));
  EXPECT_THAT(comment("// ledger: rk-a").errors, ElementsAre(HasSubstr("is too short")));
  EXPECT_THAT(comment("// ledger: " + open_.entry).errors,
              ElementsAre(HasSubstr("which has no verdict")));
}

TEST_F(LintTest, AnOverturnedEntryFails) {
  EXPECT_THAT(comment("// ledger: " + id(2)).errors,
              ElementsAre(HasSubstr("which was overturned: the clock was wrong")));
}

TEST_F(LintTest, ARuleMustCite) {
  EXPECT_THAT(rules("rules:\n  - {use: tall}\n").errors,
              ElementsAre(HasSubstr("rules/tile.yaml:2: rule cites no entry")));
  EXPECT_THAT(rules("rules:\n  - {use: tall, ledger: unmeasured}\n").errors, IsEmpty());
  EXPECT_THAT(rules("ledger: " + id(0) + "\nrules: [{use: tall}]\n").errors, IsEmpty());
}

TEST_F(LintTest, ARuleBeyondItsEvidenceFails) {
  const auto rule = [&](const std::string& when, const std::string& cited) {
    return rules("when: {device.isa: sm_90}\nrules:\n  - {when: {" + when + "}, ledger: " + cited +
                 "}\n")
        .errors;
  };
  EXPECT_THAT(rule("chunk: 512", id(0)), IsEmpty());
  EXPECT_THAT(rule("chunk: 1024", id(0)),
              ElementsAre(HasSubstr("applies to chunk 1024, and was measured at 512")));
  EXPECT_THAT(rule("chunk: 512..2048", "[" + id(0) + ", " + id(1) + "]"), IsEmpty());
  EXPECT_THAT(rule("chunk: 128..2048", "[" + id(0) + ", " + id(1) + "]"),
              ElementsAre(HasSubstr("applies to chunk 128..2048, and was measured at 512, 2048")));
  EXPECT_THAT(rule("weight_format: [q4, q8]", id(0)),
              ElementsAre(HasSubstr("applies to weight_format q8")));
  EXPECT_THAT(rule("phase_of_moon: full", id(0)), ElementsAre(HasSubstr("no such field")));
  EXPECT_THAT(rule("chunk: small..large", id(0)), ElementsAre(HasSubstr("whole numbers")));
  EXPECT_THAT(rules("when: {device.isa: sm_80}\nrules: [{ledger: " + id(0) + "}]\n").errors,
              ElementsAre(HasSubstr("applies to device.isa sm_80, and was measured at sm_90")));
}

TEST_F(LintTest, ARecipeSetsWhatTheEntryEarned) {
  const auto recipe = [&](const std::string& key, const std::string& value) {
    return rules("switches:\n  - {key: " + key + ", value: " + value + ", ledger: " + id(0) + "}\n")
        .errors;
  };
  EXPECT_THAT(recipe("moe.expert_tile", "32"), IsEmpty());
  EXPECT_THAT(recipe("moe.expert_tile", "64"),
              ElementsAre(HasSubstr("which is LOST: moe.expert_tile 32 -> 64")));
  EXPECT_THAT(recipe("prefill.tile", "tall"),
              ElementsAre(HasSubstr("which is about moe.expert_tile")));
}

TEST_F(LintTest, SupersededEntriesAreNoted) {
  StatusBody body;
  body.by = id(1);
  events_.push_back(test::status(EventType::kSuperseded, id(0), body));
  const LintReport report = comment("// ledger: " + id(0));
  EXPECT_THAT(report.errors, IsEmpty());
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("which is superseded by " + id(1))));
}

TEST_F(LintTest, RuleFilesAreReadStrictly) {
  for (const char* text : {"", "tiles: []", "rules: [tall]", "rules:\n - {when: tall}",
                           "rules:\n - {when: {chunk: {a: 1}}}", "rules:\n - {ledger: {a: 1}}"}) {
    const auto result = citations_in_rules(text, "rules/x.yaml");
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(result.error().message, HasSubstr("rules/x.yaml"));
  }
}

TEST_F(LintTest, AVerdictMustBeReproducible) {
  LintReport report;
  lint_verdicts(fold(events_), report);
  EXPECT_EQ(report.verdicts, 3U);
  ASSERT_EQ(report.errors.size(), 3U);
  for (const char* part : {"LOST has no command", "no queue", "no commit", "fewer than two rounds",
                           "no interval", "no noise band", "no fingerprints", "no peak memory"}) {
    EXPECT_THAT(report.errors[0], HasSubstr(part));
  }
}

TEST_F(LintTest, WhatAVerdictNeedsDependsOnIt) {
  Entry entry;
  entry.idea.scope = test::expert_tile_scope();
  entry.idea.reproduce = {"reckon queue run q.yaml", "name: q", "0123", {}};
  entry.verdict.emplace();
  entry.verdict->verdict = Verdict::kBroke;
  EXPECT_THAT(missing_of(entry), IsEmpty());
  entry.verdict->verdict = Verdict::kOutOfMemory;
  EXPECT_THAT(missing_of(entry), ElementsAre("no memory plan"));
  entry.verdict->verdict = Verdict::kVoid;
  EXPECT_THAT(missing_of(entry), ElementsAre("no proof"));
  entry.imported = true;
  EXPECT_THAT(missing_of(entry), IsEmpty());
}

TEST_F(LintTest, AProgramHasNeitherModelNorTokens) {
  Entry entry;
  entry.idea.scope = test::expert_tile_scope();
  entry.idea.reproduce = {"reckon ab --base a --arm b", "name: q", "0123", {}};
  entry.verdict.emplace();
  entry.verdict->verdict = Verdict::kWon;
  entry.idea.scope.model_hash.clear();
  EXPECT_THAT(missing_of(entry), IsSupersetOf({"no model hash", "no comparison of tokens"}));
  entry.idea.scope.backend = "command";
  EXPECT_THAT(missing_of(entry), Not(Contains(HasSubstr("model"))));
  EXPECT_THAT(missing_of(entry), Not(Contains(HasSubstr("tokens"))));
  EXPECT_THAT(missing_of(entry), Contains("no fingerprints"));
}

}  // namespace
}  // namespace reckon::ledger
