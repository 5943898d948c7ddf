// Lines of a ledger: as a file has them, and each once more with the id and the checksum that its
// content would have, since no mutation finds those. What is accepted must come back from its own
// line as it was, and everything goes through the fold.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "ledger/event.h"
#include "ledger/fold.h"
#include "ledger/record.h"

namespace reckon::fuzz {
namespace {

using ledger::Event;
using nlohmann::json;

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The event that a JSON object describes, its id made right.
Result<Event> repaired(const json& object) {
  TRY_ASSIGN(const ledger::EventType type, ledger::parse_event_type(text_of(object, "type")));
  const json body = object.value("body", json::object());
  const std::string writer = text_of(object, "writer");
  const std::string time = text_of(object, "time");
  if (ledger::creates_entry(type)) return make_first_event(type, body, writer, time);
  return make_event(type, text_of(object, "entry"), body, writer, time);
}

void round_trip(const Event& event) {
  const Result<std::string> line = event_line(event);
  if (!accepted(line)) return;
  const Result<Event> again = ledger::parse_event_line(*line, "input.jsonl:1");
  RECKON_CHECK(again.ok() && *again == event);
  (void)accepted(check_body(event));
}

}  // namespace

void fuzz(std::string_view bytes) {
  std::vector<Event> events;
  std::string first_entry;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    (void)accepted(ledger::parse_event_line(line, "input.jsonl:1"));
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object()) continue;
    Result<Event> event = repaired(object);
    if (!accepted(event)) continue;
    if (first_entry.empty()) first_entry = event->entry;
    if (!ledger::creates_entry(event->type)) event->entry = first_entry;
    round_trip(*event);
    events.push_back(*event);
  }
  (void)ledger::fold(events);
}

}  // namespace reckon::fuzz
