#include "ledger/consult.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using test::at;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// One entry of the usual scope with this verdict, then the given later events.
class ConsultTest : public testing::Test {
 protected:
  const Event idea_ = test::idea(test::expert_tile_scope());
  const std::string id_ = idea_.entry;

  static VerdictBody verdict_of(Verdict verdict) {
    VerdictBody body = test::lost();
    body.verdict = verdict;
    return body;
  }
  static VerdictBody void_of(VoidReason reason) {
    VerdictBody body = verdict_of(Verdict::kVoid);
    body.void_reason = reason;
    body.numbers.reset();
    return body;
  }
  std::vector<Entry> entries(const VerdictBody& body, const std::vector<Event>& later = {}) const {
    std::vector<Event> events = {idea_, test::verdict(id_, body)};
    events.insert(events.end(), later.begin(), later.end());
    Ledger ledger = fold(events);
    EXPECT_TRUE(ledger.warnings.empty());
    return ledger.entries;
  }
  static Query query() {
    Query query;
    query.scope = test::expert_tile_scope();
    query.claim = 0.02;
    query.sources = Sources{{"moe_tile", "aaaa"}};
    return query;
  }
};

TEST_F(ConsultTest, AnEmptyLedgerKnowsNothing) {
  const Consultation answer = consult({}, query());
  EXPECT_FALSE(answer.block || answer.join);
  EXPECT_TRUE(answer.near.empty() && answer.stale.empty() && answer.offers.empty());
}

TEST_F(ConsultTest, ASweepNeitherBlocksNorTakesRoundsNorAVerdict) {
  IdeaBody body;
  body.kind = EntryKind::kTuning;
  body.scope = test::expert_tile_scope();
  const Event sweep = make_first_event(EventType::kIdea, encode(body), "ann", at(0)).value();
  const Ledger ledger = fold(std::vector<Event>{sweep, test::measured(sweep.entry, "r", -0.04),
                                                test::verdict(sweep.entry, test::lost())});
  EXPECT_THAT(ledger.warnings, ElementsAre(HasSubstr("a sweep has no rounds"),
                                           HasSubstr("a sweep gets no verdict")));
  EXPECT_TRUE(ledger.entries[0].unfinished_because().empty());
  const Consultation answer = consult(ledger.entries, query());
  EXPECT_FALSE(answer.block || answer.join);
  ASSERT_EQ(answer.allowed.size(), 1u);
  EXPECT_THAT(answer.allowed[0].text, HasSubstr("a sweep, which gives no verdict"));
}

TEST_F(ConsultTest, SettledVerdictsBlock) {
  for (const Verdict verdict :
       {Verdict::kWon, Verdict::kLost, Verdict::kNeutral, Verdict::kBroke, Verdict::kOutOfMemory}) {
    const Consultation answer = consult(entries(verdict_of(verdict)), query());
    ASSERT_TRUE(answer.block.has_value()) << verdict_name(verdict);
    EXPECT_EQ(answer.block->entry, id_);
    EXPECT_EQ(answer.block->verdict, verdict);
  }
}

TEST_F(ConsultTest, TheBlockSaysTheNumberTheDateAndHowToOverride) {
  const std::string text = consult(entries(test::lost()), query()).block->text;
  EXPECT_THAT(text, HasSubstr(id_ + ": LOST -3.9% (949.4 / 951.9 -> 914.6 / 914.7 tok/s)"));
  VerdictBody sizes = test::lost();
  sizes.numbers->unit = "B";
  sizes.numbers->base_values = {1048576};
  sizes.numbers->arm_values = {3145728};
  EXPECT_THAT(consult(entries(sizes), query()).block->text, HasSubstr(" (1.0 MiB -> 3.0 MiB) "));
  EXPECT_THAT(text, HasSubstr("on 2026-09-14"));
  EXPECT_THAT(text, HasSubstr("because occupancy costs more"));
  EXPECT_THAT(text, HasSubstr("lever: more tokens a chunk"));
  EXPECT_THAT(text, HasSubstr("--force \"reason\""));
}

TEST_F(ConsultTest, AnyOtherScopeIsNearAndNeverBlocks) {
  const nlohmann::json scope = scope_to_json(test::expert_tile_scope());
  const nlohmann::json leaves = scope.flatten();
  for (const auto& [path, value] : leaves.items()) {
    if (value.is_null() || path == "/switch") continue;
    nlohmann::json changed = scope;
    changed[nlohmann::json::json_pointer(path)] =
        value.is_string() ? nlohmann::json("other") : nlohmann::json(77);
    Query other = query();
    other.scope = scope_from_json(changed).value();
    const Consultation answer = consult(entries(test::lost()), other);
    EXPECT_FALSE(answer.block || answer.join) << path;
    ASSERT_EQ(answer.near.size(), 1U) << path;
    EXPECT_EQ(answer.near[0].differences.size(), 1U) << path;
    EXPECT_THAT(answer.near[0].text, HasSubstr("LOST -3.9%"));
  }
  Query other = query();
  other.scope.switch_key = "prefill.split_k";
  EXPECT_TRUE(consult(entries(test::lost()), other).near.empty());
}

TEST_F(ConsultTest, ProductNamesAreNotCompared) {
  std::vector<Entry> known = entries(test::lost());
  known[0].idea.device_name = "H200 SXM";
  known[0].idea.model_name = "some name";
  EXPECT_TRUE(consult(known, query()).block.has_value());
}

TEST_F(ConsultTest, NearEntriesComeWithTheFewestDifferencesFirst) {
  Scope far = test::expert_tile_scope();
  far.chunk = 512;
  far.device.units = 114;
  Scope close = test::expert_tile_scope();
  close.chunk = 512;
  const Ledger ledger = fold(std::vector<Event>{test::idea(far), test::idea(close)});
  const Consultation answer = consult(ledger.entries, query());
  ASSERT_EQ(answer.near.size(), 2U);
  EXPECT_THAT(answer.near[0].differences, ElementsAre(ScopeDifference{"chunk", "512", "2048"}));
  EXPECT_EQ(answer.near[1].differences.size(), 2U);
}

TEST_F(ConsultTest, NeutralBlocksClaimsAtLeastAsLargeAsItsOwn) {
  const std::vector<Entry> neutral = entries(verdict_of(Verdict::kNeutral));  // claim 0.02
  Query ask = query();
  ask.claim = 0.05;
  EXPECT_TRUE(consult(neutral, ask).block.has_value());
  for (const std::optional<double> smaller : {std::optional(0.019), std::optional<double>()}) {
    ask.claim = smaller;
    const Consultation answer = consult(neutral, ask);
    EXPECT_FALSE(answer.block.has_value());
    ASSERT_EQ(answer.allowed.size(), 1U);
    EXPECT_THAT(answer.allowed[0].text, HasSubstr("neutral to a claim of +2.0%"));
  }
  VerdictBody stricter = verdict_of(Verdict::kNeutral);
  stricter.numbers->claim = 0.01;  // the verdict's own claim goes before the idea's
  ask.claim = 0.015;
  EXPECT_TRUE(consult(entries(stricter), ask).block.has_value());
}

TEST_F(ConsultTest, InconclusiveNeverBlocksAndIsJoined) {
  const Consultation answer = consult(entries(verdict_of(Verdict::kInconclusive)), query());
  EXPECT_FALSE(answer.block.has_value());
  ASSERT_TRUE(answer.join.has_value());
  EXPECT_EQ(answer.join->entry, id_);
}

TEST_F(ConsultTest, AnEntryWithoutAVerdictIsJoined) {
  const Consultation answer = consult(fold(std::vector<Event>{idea_}).entries, query());
  ASSERT_TRUE(answer.join.has_value());
  EXPECT_FALSE(answer.join->verdict.has_value());
  EXPECT_FALSE(answer.block.has_value());
}

TEST_F(ConsultTest, VoidBlocksByEqualDispatchUntilASourceChanges) {
  const std::vector<Entry> equal = entries(void_of(VoidReason::kEqualDispatch));
  Query ask = query();
  EXPECT_TRUE(consult(equal, ask).block.has_value());
  ask.sources = Sources{{"moe_tile", "bbbb"}};
  const Consultation answer = consult(equal, ask);
  EXPECT_FALSE(answer.block.has_value());
  ASSERT_EQ(answer.stale.size(), 1U);
  EXPECT_THAT(answer.stale[0].changed, ElementsAre("moe_tile"));
}

TEST_F(ConsultTest, VoidByDisturbanceNeverBlocks) {
  const Consultation answer = consult(entries(void_of(VoidReason::kDisturbed)), query());
  EXPECT_FALSE(answer.block || answer.join);
  EXPECT_EQ(answer.allowed.size(), 1U);
}

TEST_F(ConsultTest, StaleEntriesWarnAndAllow) {
  Query ask = query();
  ask.sources =
      Sources{{"moe_tile", "aaaa"}, {"moe_tile_64", "cccc"}};  // a variant that was not there
  Consultation answer = consult(entries(test::lost()), ask);
  EXPECT_FALSE(answer.block.has_value());
  ASSERT_EQ(answer.stale.size(), 1U);
  EXPECT_THAT(answer.stale[0].text, HasSubstr("changed since: moe_tile_64"));
  ask.sources = Sources();
  EXPECT_THAT(consult(entries(test::lost()), ask).stale.at(0).changed, ElementsAre("moe_tile"));
  // Stale rounds are not mixed with new ones.
  answer = consult(entries(verdict_of(Verdict::kInconclusive)), ask);
  EXPECT_FALSE(answer.join.has_value());
  EXPECT_EQ(answer.stale.size(), 1U);
}

TEST_F(ConsultTest, WithoutKnownSourcesNothingIsStale) {
  Query ask = query();
  ask.sources.reset();
  EXPECT_TRUE(consult(entries(test::lost()), ask).block.has_value());
  VerdictBody unrecorded = test::lost();
  unrecorded.sources.clear();
  EXPECT_TRUE(consult(entries(unrecorded), query()).block.has_value());
}

TEST_F(ConsultTest, OverturnedEntriesNeitherBlockNorTakeRounds) {
  const Event overturned = test::status(EventType::kOverturned, id_, {"wrong clock", ""});
  const Consultation answer = consult(entries(test::lost(), {overturned}), query());
  EXPECT_FALSE(answer.block || answer.join);
  ASSERT_EQ(answer.allowed.size(), 1U);
  EXPECT_THAT(answer.allowed[0].text, HasSubstr("wrong clock"));
  EXPECT_FALSE(consult(entries(verdict_of(Verdict::kInconclusive), {overturned}), query()).join);
}

TEST_F(ConsultTest, ReopenedEntriesTakeNewRounds) {
  const Event reopened = test::status(EventType::kReopened, id_, {"a new driver", ""});
  std::vector<Entry> known = entries(test::lost(), {reopened});
  Query ask = query();
  ask.sources = Sources{{"moe_tile", "rewritten since"}};
  for (const Query& now : {query(), ask}) {
    const Consultation answer = consult(known, now);
    EXPECT_FALSE(answer.block.has_value());
    EXPECT_TRUE(answer.allowed.empty() && answer.stale.empty());
    ASSERT_TRUE(answer.join.has_value());
    EXPECT_EQ(answer.join->entry, id_);
    EXPECT_THAT(answer.join->text, AllOf(HasSubstr("it was reopened: a new driver"),
                                         HasSubstr("counts only rounds from now on")));
  }
  // It waits for a verdict, and a later open one does not.
  const Event later = test::idea(test::expert_tile_scope(), "bob", at(20));
  known.push_back(fold(std::vector<Event>{later}).entries[0]);
  EXPECT_EQ(consult(known, query()).join->entry, id_);
  known.erase(known.begin());
  EXPECT_EQ(consult(known, query()).join->entry, later.entry);
}

TEST_F(ConsultTest, SupersededEntriesStillBlockAndNameTheirSuccessor) {
  const Event superseded =
      test::status(EventType::kSuperseded, id_, {"a faster kernel", "rk-qrstuvwxyz23"});
  const Consultation answer = consult(entries(test::lost(), {superseded}), query());
  ASSERT_TRUE(answer.block.has_value());
  EXPECT_THAT(answer.block->text, HasSubstr("superseded by rk-qrstuvwxyz23"));
}

TEST_F(ConsultTest, ImportedEntriesNeverBlock) {
  ImportedBody body;
  body.idea = decode<IdeaBody>(idea_.body).value();
  body.result = test::lost();
  const Event imported = make_first_event(EventType::kImported, encode(body), "ann", at(0)).value();
  const Consultation answer = consult(fold(std::vector<Event>{imported}).entries, query());
  EXPECT_FALSE(answer.block || answer.join);
  ASSERT_EQ(answer.allowed.size(), 1U);
  EXPECT_THAT(answer.allowed[0].text, HasSubstr("reported elsewhere"));
}

TEST_F(ConsultTest, ConditionsThatNowHoldAreOffered) {
  VerdictBody body = test::lost();
  body.revisit_when = {"sms > 200", "chunk >= 4096"};
  Query ask = query();
  ask.scope.chunk = 4096;
  const Consultation answer = consult(entries(body), ask);
  ASSERT_EQ(answer.offers.size(), 1U);
  EXPECT_EQ(answer.offers[0].predicate, "chunk >= 4096");
  EXPECT_EQ(answer.near.size(), 1U);
  EXPECT_TRUE(consult(entries(body), query()).offers.empty());
}

TEST_F(ConsultTest, WhatTheEnvironmentSaidThenIsKnown) {
  VerdictBody body = test::lost();
  body.revisit_when = {"driver_version >= 580.80"};
  Query ask = query();
  ask.facts = {{"driver_version", 580126009}};
  body.environment.driver = "NVIDIA 580.95.05";
  EXPECT_TRUE(consult(entries(body), ask).block.has_value());
  body.environment.driver = "NVIDIA 580.65.06";
  EXPECT_EQ(consult(entries(body), ask).offers.size(), 1U);
}

TEST_F(ConsultTest, AConditionBeyondTheScopeLiftsTheBlock) {
  VerdictBody body = test::lost();
  body.revisit_when = {"cuda >= 14"};
  body.environment.facts = {{"cuda", 13.0}};
  Query ask = query();
  ask.facts = {{"cuda", 13.5}};
  EXPECT_TRUE(consult(entries(body), ask).block.has_value());
  ask.facts = {{"cuda", 14.0}};
  const Consultation answer = consult(entries(body), ask);
  EXPECT_FALSE(answer.block.has_value());
  EXPECT_EQ(answer.offers.size(), 1U);
  EXPECT_EQ(answer.allowed.size(), 1U);
}

TEST_F(ConsultTest, AConditionThatHeldAllAlongLiftsNothing) {
  VerdictBody body = test::lost();
  body.revisit_when = {"chunk >= 1"};
  const Consultation answer = consult(entries(body), query());
  EXPECT_TRUE(answer.block.has_value());
  EXPECT_TRUE(answer.offers.empty());
}

TEST_F(ConsultTest, NearTextSaysOnlyWhatDiffers) {
  NearFinding near;
  near.text = "rk-abcd: LOST -3.9% on 2026-09-14";
  near.differences = {
      {"device.units", "8", "64"},
      {"reach", "", "matmul/decode"},
      {"workload_class", "metric=a phase=decode pairs=6", "metric=a phase=decode pairs=2"}};
  EXPECT_EQ(near_text(near),
            "rk-abcd: LOST -3.9% on 2026-09-14 (device.units 8 there, 64 here; reach unset there, "
            "matmul/decode here; pairs 6 there, 2 here)");
  near.differences = {{"chunk", "0", "512"},
                      {"device.units", "8", "64"},
                      {"reach", "", "x"},
                      {"prompt_hash", "", "y"},
                      {"shape_hash", "", "z"}};
  EXPECT_THAT(near_text(near), HasSubstr("(device.units 8 there, 64 here; not stated there: chunk, "
                                         "reach, prompt_hash, shape_hash)"));
  near.differences = {{"workload_class", "metric=a", "metric=a pairs=2"}};
  EXPECT_THAT(near_text(near), HasSubstr("(workload_class metric=a there, metric=a pairs=2 here)"));
}

TEST_F(ConsultTest, IdenticalArmsJoinTheirFloor) {
  const Event floor = test::idea(test::floor_scope());
  const Ledger ledger = fold(std::vector<Event>{floor, idea_});
  Query ask;
  ask.scope = test::floor_scope();
  const Consultation answer = consult(ledger.entries, ask);
  ASSERT_TRUE(answer.join.has_value());
  EXPECT_EQ(answer.join->entry, floor.entry);
  EXPECT_TRUE(answer.near.empty());
}

}  // namespace
}  // namespace reckon::ledger
