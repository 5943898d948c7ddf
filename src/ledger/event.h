// One ledger event, its canonical line of text, and the ids of entries.
//
// A line is a JSON object on one line of UTF-8 with sorted keys:
//   {"body":{...},"entry":"rk-...","schema":1,"sum":"<32
//   hex>","time":"...Z","type":"...","writer":"..."}
// `sum` is the hash of the same object without `sum`, in canonical form, so spaces and line ends
// that git or an editor changed do not matter, and a changed value does. Pure and thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon::ledger {

inline constexpr int kSchemaVersion = 1;

enum class EventType {
  kIdea,        // creates an entry: scope, idea, claim, how to reproduce (IdeaBody)
  kMeasured,    // one round (MeasuredBody)
  kVerdict,     // VerdictBody; a later one replaces an earlier one
  kNote,        // NoteBody: text, or a mechanism, conditions or lever learnt later
  kOverturned,  // StatusBody: the result was wrong
  kReopened,    // StatusBody: worth measuring again
  kSuperseded,  // StatusBody: `by` names the entry that replaces it
  kImported,    // creates an entry from figures that were reported elsewhere (ImportedBody)
};

[[nodiscard]] std::string_view event_type_name(EventType type);
[[nodiscard]] Result<EventType> parse_event_type(std::string_view name);

struct Event {
  EventType type = EventType::kNote;
  std::string entry;   // "rk-" and 12 base-32 characters
  std::string time;    // "2026-09-14T08:30:00Z"
  std::string writer;  // see writer.h
  nlohmann::json body = nlohmann::json::object();
  int schema = kSchemaVersion;

  bool operator==(const Event&) const = default;
};

// The first event of a new entry (kIdea or kImported): `entry` is filled in from the hash of the
// rest. The same body, time and writer give the same entry.
[[nodiscard]] Result<Event> make_first_event(EventType type, nlohmann::json body,
                                             std::string writer, std::string time);
// A later event of an entry.
[[nodiscard]] Event make_event(EventType type, std::string entry, nlohmann::json body,
                               std::string writer, std::string time);

// The id that `event` gives to an entry as its first event (the `entry` field is not read).
[[nodiscard]] Result<std::string> entry_id_of(const Event& event);
[[nodiscard]] bool creates_entry(EventType type);
[[nodiscard]] bool is_entry_id(std::string_view text);  // by its form

// Compact JSON with sorted keys. Errors: invalid UTF-8, NaN and infinities (JSON has none).
[[nodiscard]] Result<std::string> canonical_json(const nlohmann::json& value);

// The hash over everything but itself: the identity of an event, by which ledgers are merged.
[[nodiscard]] Result<std::string> checksum(const Event& event);

// The event's line, without the newline. Errors as check_event and canonical_json.
[[nodiscard]] Result<std::string> event_line(const Event& event);

// Parses a line. `where` ("ledger/ann-2026-09.jsonl:12") starts every message. Errors: not JSON,
// a missing or mistyped field, an unknown type, a newer schema, a checksum that does not match.
[[nodiscard]] Result<Event> parse_event_line(std::string_view line, std::string_view where);

// The same, with the checksum that the line states and that was found to be right.
struct SummedEvent {
  Event event;
  std::string sum;
};
[[nodiscard]] Result<SummedEvent> parse_summed_line(std::string_view line, std::string_view where);

// What the envelope must satisfy: id, time and writer well-formed, body an object, and the id of a
// creating event its own hash.
[[nodiscard]] Status check_event(const Event& event);

// The one id that `prefix` names: at least four characters after "rk-", which may be left out; a
// full id that exists always resolves. Usage errors: too short, unknown, ambiguous (lists them).
[[nodiscard]] Result<std::string> resolve_id(std::string_view prefix,
                                             std::span<const std::string> ids);

}  // namespace reckon::ledger
