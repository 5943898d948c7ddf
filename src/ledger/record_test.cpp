#include "ledger/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using test::at;
using testing::HasSubstr;

VerdictBody full_verdict() {
  VerdictBody body = test::lost();
  body.detail = "tokens diverge";
  body.numbers->interval = Interval{-0.05, -0.03};
  body.numbers->noise_band = Interval{-0.01, 0.01};
  body.numbers->claim = 0.02;
  body.numbers->noise_rounds = 24;
  body.numbers->smallest_effect = 0.013;
  body.rounds = {"r1", "r2"};
  body.proof = Proof{true, "f1", "f2", {"a"}, {"b", "c"}, {"d"}};
  body.tokens = TokenCheck{false, 256, Divergence{"prose", 383, 5, 7, 0.01}, 1e-4, -0.001};
  body.peaks = Peaks{1ULL << 40, (1ULL << 40) + 1};
  body.memory_plan = MemoryPlan{100, 90, 120, {{"weights", 80}, {"scratch", 40}}};
  body.environment.driver = "580";
  body.environment.dirty = true;
  body.environment.readings = {{"load", "0.2"}};
  body.environment.facts = {{"cuda", 13.0}};
  body.evidence = {"roofline 0.4"};
  body.revisit_when = {"chunk >= 2048"};
  body.conditions = "a driver that spills less";
  body.lever_entry = "rk-abcdefghijkl";
  return body;
}

TEST(Record, VerdictRoundTrips) {
  const nlohmann::json json = encode(full_verdict());
  const VerdictBody back = decode<VerdictBody>(json).value();
  EXPECT_EQ(encode(back), json);
  EXPECT_EQ(back.verdict, Verdict::kLost);
  EXPECT_EQ(back.tokens->first_divergence->position, 383);
  EXPECT_EQ(back.peaks->arm_bytes, (1ULL << 40) + 1);
  EXPECT_EQ(back.memory_plan->arm_terms[1].name, "scratch");
  EXPECT_EQ(back.numbers->arm_values[1], 914.7);
  EXPECT_TRUE(back.environment.dirty);
  EXPECT_FALSE(back.void_reason.has_value());
}

TEST(Record, MeasuredKeepsEverySample) {
  const Event event = test::measured("rk-abcdefghijkl", "r1", -0.04);
  const MeasuredBody body = decode<MeasuredBody>(event.body).value();
  ASSERT_EQ(body.round.pairs.size(), 2U);
  EXPECT_EQ(body.round.pairs[1].arm, 96.0);
  EXPECT_TRUE(body.round.pairs[1].arm_first);
  EXPECT_EQ(encode(body), event.body);
}

TEST(Record, KeepsUnknownFieldsAtEveryLevel) {
  nlohmann::json json = encode(full_verdict());
  json["novel"] = 1;
  json["numbers"]["novel"] = {1, 2};
  json["memory_plan"]["arm_terms"][0]["novel"] = "x";
  json["environment"]["novel"] = nullptr;
  EXPECT_EQ(encode(decode<VerdictBody>(json).value()), json);
}

TEST(Record, LeavesEmptyFieldsOut) {
  const nlohmann::json json = encode(NoteBody{});
  EXPECT_TRUE(json.empty()) << json;
  EXPECT_FALSE(encode(test::lost()).contains("proof"));
}

TEST(Record, ErrorsNameThePath) {
  const auto error = [](nlohmann::json json) { return decode<MeasuredBody>(json).error().message; };
  nlohmann::json good = test::measured("rk-abcdefghijkl", "r1", -0.04).body;
  EXPECT_TRUE(decode<MeasuredBody>(good).ok());
  nlohmann::json bad = good;
  bad["round"]["pairs"][1]["base"] = "fast";
  EXPECT_THAT(error(bad), HasSubstr("round.pairs[1].base is a string: expected a number"));
  bad = good;
  bad["round"].erase("median_log");
  EXPECT_THAT(error(bad), HasSubstr("round: 'median_log' is missing"));
  bad = good;
  bad.erase("round");
  EXPECT_THAT(error(bad), HasSubstr("'round' is missing"));
  bad = good;
  bad["round"]["seed"] = -1;
  EXPECT_THAT(error(bad), HasSubstr("round.seed"));
  bad = good;
  bad["sources"] = {1, 2};
  EXPECT_THAT(error(bad), HasSubstr("sources is a array: expected an object"));
  EXPECT_THAT(error(nlohmann::json::array()), HasSubstr("body is a array"));
  EXPECT_THAT(decode<VerdictBody>({{"verdict", "MAYBE"}}).error().message, HasSubstr("verdict"));
  EXPECT_THAT(decode<VerdictBody>(nlohmann::json::object()).error().message,
              HasSubstr("'verdict' is missing"));
}

std::string body_error(EventType type, const nlohmann::json& body) {
  const Status status = check_body(make_event(type, "rk-abcdefghijkl", body, "ann", at(0)));
  return status.ok() ? "" : status.error().message;
}

TEST(CheckBody, SaysWhatTypesCannot) {
  VerdictBody body = test::lost();
  EXPECT_EQ(body_error(EventType::kVerdict, encode(body)), "");
  body.verdict = Verdict::kVoid;
  EXPECT_THAT(body_error(EventType::kVerdict, encode(body)), HasSubstr("void_reason"));
  body.void_reason = VoidReason::kDisturbed;
  EXPECT_EQ(body_error(EventType::kVerdict, encode(body)), "");
  body.revisit_when = {"when it rains"};
  EXPECT_THAT(body_error(EventType::kVerdict, encode(body)), HasSubstr("not a condition"));

  EXPECT_THAT(body_error(EventType::kSuperseded, encode(StatusBody{"r", ""})), HasSubstr("by"));
  EXPECT_EQ(body_error(EventType::kReopened, encode(StatusBody{"r", ""})), "");
  EXPECT_THAT(body_error(EventType::kOverturned, encode(StatusBody{"r", "x"})),
              HasSubstr("not an entry id"));
  EXPECT_THAT(body_error(EventType::kMeasured, {{"round", {{"id", ""}, {"median_log", 0}}}}),
              HasSubstr("round.id"));

  IdeaBody idea;
  EXPECT_THAT(body_error(EventType::kIdea, encode(idea)), HasSubstr("scope.switch is empty"));
  idea.kind = EntryKind::kFloor;
  EXPECT_EQ(body_error(EventType::kIdea, encode(idea)), "");
  idea.scope = test::expert_tile_scope();
  EXPECT_THAT(body_error(EventType::kIdea, encode(idea)), HasSubstr("scope.switch is set"));
  idea.kind = EntryKind::kComparison;
  idea.claim = -0.02;
  EXPECT_THAT(body_error(EventType::kIdea, encode(idea)), HasSubstr("claim"));
}

TEST(Verdict, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(Verdict::kOutOfMemory); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    EXPECT_EQ(parse_verdict(verdict_name(verdict)).value(), verdict);
  }
  EXPECT_EQ(parse_verdict("won").error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace reckon::ledger
