#include "ledger/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/hash.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

using test::at;
using testing::HasSubstr;

Event sample() {
  return test::idea(test::expert_tile_scope());
}

std::string error_of(std::string_view line) {
  const Result<Event> event = parse_event_line(line, "dir/ann-2026-09.jsonl:12");
  return event.ok() ? "" : event.error().message;
}

TEST(EventLine, RoundTrips) {
  Event event = sample();
  event.body["free"] = {{"text", "a\nb \"c\" \u00e9"}, {"numbers", {1, -2, 0.1, 1e300}}};
  event.entry = entry_id_of(event).value();
  const std::string line = event_line(event).value();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(parse_event_line(line, "x").value(), event);
  EXPECT_EQ(event_line(parse_event_line(line, "x").value()).value(), line);
}

TEST(EventLine, KeysAreSorted) {
  const std::string line =
      event_line(make_event(EventType::kNote, "rk-abcdefghijkl", {{"text", "t"}}, "ann", at(0)))
          .value();
  EXPECT_THAT(line, testing::MatchesRegex(
                        R"re(\{"body":\{"text":"t"\},"entry":"rk-abcdefghijkl","schema":1,)re"
                        R"re("sum":"[0-9a-f]{32}","time":"2026-09-14T08:00:00Z","type":"note",)re"
                        R"re("writer":"ann"\})re"));
}

TEST(EventLine, SpacesDoNotMatterAndValuesDo) {
  std::string line = event_line(sample()).value();
  std::string spaced = nlohmann::json::parse(line).dump(2);
  EXPECT_EQ(parse_event_line(spaced, "x").value(), sample());
  const size_t at_claim = line.find("0.02");
  ASSERT_NE(at_claim, std::string::npos);
  line[at_claim + 3] = '3';
  EXPECT_THAT(error_of(line), HasSubstr("checksum mismatch"));
}

TEST(EventLine, EveryChangedByteIsNoticed) {
  const std::string line = event_line(sample()).value();
  for (size_t i = 0; i < line.size(); ++i) {
    std::string changed = line;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const Result<Event> event = parse_event_line(changed, "x");
    EXPECT_TRUE(!event.ok()) << "byte " << i << ": " << changed;
  }
}

TEST(EventLine, EveryPrefixIsNoticed) {
  const std::string line = event_line(sample()).value();
  for (size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(parse_event_line(line.substr(0, size), "x").ok()) << size;
  }
}

TEST(ParseEventLine, ErrorsNameTheLineAndWhatWasExpected) {
  EXPECT_THAT(error_of("{\"body\""), HasSubstr("dir/ann-2026-09.jsonl:12: not a line of JSON"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("expected an event object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("no field 'sum'"));
  EXPECT_THAT(error_of(R"({"sum":3})"), HasSubstr("field 'sum' is a number: expected a string"));
  EXPECT_THAT(error_of("<<<<<<< HEAD"), HasSubstr("not a line of JSON"));
}

// A note's line with some fields replaced (null removes one) and a checksum that fits.
std::string with_sum(const nlohmann::json& changes) {
  nlohmann::json full = {{"schema", 1},     {"type", "note"},
                         {"time", at(0)},   {"entry", "rk-abcdefghijkl"},
                         {"writer", "ann"}, {"body", nlohmann::json::object()}};
  full.merge_patch(changes);
  full["sum"] = hash_hex(full.dump());
  return full.dump();
}

TEST(ParseEventLine, ChecksTheEnvelopeAfterTheChecksum) {
  EXPECT_EQ(error_of(with_sum(nlohmann::json::object())), "");
  EXPECT_THAT(error_of(with_sum({{"schema", 2}})), HasSubstr("schema 2: this version"));
  EXPECT_THAT(error_of(with_sum({{"schema", "1"}})), HasSubstr("no integer field 'schema'"));
  EXPECT_THAT(error_of(with_sum({{"type", "wish"}})), HasSubstr("unknown event type 'wish'"));
  EXPECT_THAT(error_of(with_sum({{"entry", "rk-abc"}})), HasSubstr("not an entry id"));
  EXPECT_THAT(error_of(with_sum({{"time", "yesterday"}})), HasSubstr("not a time"));
  EXPECT_THAT(error_of(with_sum({{"time", "2026-13-14T08:30:00Z"}})), HasSubstr("not a time"));
  EXPECT_THAT(error_of(with_sum({{"writer", "A B"}})), HasSubstr("not a writer name"));
  EXPECT_THAT(error_of(with_sum({{"body", 3}})), HasSubstr("expected an object"));
  EXPECT_THAT(error_of(with_sum({{"body", nullptr}})), HasSubstr("no field 'body'"));
  EXPECT_THAT(error_of(with_sum({{"more", 3}})), HasSubstr("unknown field 'more'"));
}

TEST(ParseEventLine, KeepsItsErrorsToOneLine) {
  for (const char* key : {"type", "entry", "time", "writer"}) {
    EXPECT_THAT(error_of(with_sum({{key, "a\nb\x1b"}})), HasSubstr("'a b\\x1b'")) << key;
  }
}

TEST(ParseEventLine, SurvivesDeepNesting) {
  const std::string deep(200000, '[');
  EXPECT_FALSE(parse_event_line(deep, "x").ok());
  const std::string closed = deep + std::string(200000, ']');
  EXPECT_THAT(error_of(R"({"sum":"","body":)" + closed + "}"), HasSubstr("nested deeper"));
}

TEST(CanonicalJson, RefusesWhatJsonCannotSay) {
  EXPECT_FALSE(canonical_json({{"a", std::numeric_limits<double>::quiet_NaN()}}).ok());
  EXPECT_FALSE(canonical_json({{"a", {1.0, std::numeric_limits<double>::infinity()}}}).ok());
  EXPECT_FALSE(canonical_json({{"a", "\xff"}}).ok());
  EXPECT_EQ(canonical_json({{"b", 1}, {"a", 0.1}}).value(), R"({"a":0.1,"b":1})");
}

TEST(EntryId, IsTheHashOfTheFirstEvent) {
  const Event event = sample();
  EXPECT_TRUE(is_entry_id(event.entry)) << event.entry;
  EXPECT_EQ(sample().entry, event.entry);
  EXPECT_NE(test::idea(test::expert_tile_scope(), "bob").entry, event.entry);
  EXPECT_NE(test::idea(test::expert_tile_scope(), "ann", at(1)).entry, event.entry);
  Event stolen = event;
  stolen.entry = "rk-abcdefghijkl";
  EXPECT_FALSE(check_event(stolen).ok());
}

TEST(ResolveId, TakesUniquePrefixesOfFourOrMore) {
  const std::vector<std::string> ids = {"rk-abcdefghijkl", "rk-abcdzzzzzzzz", "rk-qrstuvwxyz23"};
  EXPECT_EQ(resolve_id("rk-qrst", ids).value(), ids[2]);
  EXPECT_EQ(resolve_id("qrst", ids).value(), ids[2]);
  EXPECT_EQ(resolve_id("rk-abcdefghijkl", ids).value(), ids[0]);
  EXPECT_THAT(resolve_id("rk-qrs", ids).error().message, HasSubstr("too short"));
  EXPECT_THAT(resolve_id("", ids).error().message, HasSubstr("too short"));
  EXPECT_THAT(resolve_id("wxyz", ids).error().message, HasSubstr("no entry 'wxyz'"));
  const Error ambiguous = resolve_id("abcd", ids).error();
  EXPECT_EQ(ambiguous.kind, ErrorKind::kUsage);
  EXPECT_THAT(ambiguous.message, HasSubstr("2 entries: rk-abcdefghijkl, rk-abcdzzzzzzzz"));
  const std::vector<std::string> twice = {ids[0], ids[0]};
  EXPECT_EQ(resolve_id("abcd", twice).value(), ids[0]);
}

TEST(EventType, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(EventType::kImported); ++i) {
    const auto type = static_cast<EventType>(i);
    EXPECT_EQ(parse_event_type(event_type_name(type)).value(), type);
  }
}

}  // namespace
}  // namespace reckon::ledger
