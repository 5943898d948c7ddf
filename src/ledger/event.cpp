#include "ledger/event.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "ledger/writer.h"

namespace reckon::ledger {
namespace {

constexpr std::string_view kIdPrefix = "rk-";
constexpr size_t kIdCharacters = 12;
constexpr size_t kShortestPrefix = 4;
constexpr size_t kMostListed = 8;  // candidates named by an ambiguous prefix
constexpr int kDeepestJson = 64;

constexpr std::array<std::pair<EventType, std::string_view>, 8> kTypeNames{{
    {EventType::kIdea, "idea"},
    {EventType::kMeasured, "measured"},
    {EventType::kVerdict, "verdict"},
    {EventType::kNote, "note"},
    {EventType::kOverturned, "overturned"},
    {EventType::kReopened, "reopened"},
    {EventType::kSuperseded, "superseded"},
    {EventType::kImported, "imported"},
}};

bool is_base32(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7');
}

bool is_timestamp(std::string_view time) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:ddZ";
  if (time.size() != kShape.size()) return false;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = time[i] >= '0' && time[i] <= '9';
    if (kShape[i] == 'd' ? !digit : time[i] != kShape[i]) return false;
  }
  const auto two = [&](size_t at) { return (time[at] - '0') * 10 + (time[at + 1] - '0'); };
  return two(5) >= 1 && two(5) <= 12 && two(8) >= 1 && two(8) <= 31 && two(11) <= 23 &&
         two(14) <= 59 && two(17) <= 60;
}

Status check_values(const nlohmann::json& value, int depth) {
  if (depth > kDeepestJson) {
    return failed(fmt::format("JSON nested deeper than {} levels", kDeepestJson));
  }
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return failed("a number is not finite, and JSON has no form for it");
  }
  if (value.is_structured()) {
    for (const auto& [key, item] : value.items()) {
      if (Status status = check_values(item, depth + 1); !status.ok()) {
        return failed(fmt::format("{}: {}", key, status.error().message));
      }
    }
  }
  return {};
}

nlohmann::json to_json(const Event& event) {
  return {{"schema", event.schema}, {"type", event_type_name(event.type)},
          {"entry", event.entry},   {"time", event.time},
          {"writer", event.writer}, {"body", event.body}};
}

// A string field of an event line, or an error that says what was there.
Result<std::string> text_field(const nlohmann::json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end()) return failed(fmt::format("no field '{}'", name));
  if (!found->is_string()) {
    return failed(fmt::format("field '{}' is a {}: expected a string", name, found->type_name()));
  }
  return found->get<std::string>();
}

Result<SummedEvent> event_from_json(nlohmann::json line) {
  if (!line.is_object()) {
    return failed(fmt::format("a JSON {}: expected an event object", line.type_name()));
  }
  TRY_ASSIGN(const std::string stated, text_field(line, "sum"));
  line.erase("sum");
  TRY_ASSIGN(const std::string canonical, canonical_json(line));
  if (const std::string actual = hash_hex(canonical); actual != stated) {
    return failed(
        fmt::format("checksum mismatch: the line says {} and its content is {}", stated, actual));
  }
  const auto schema = line.find("schema");
  if (schema == line.end() || !schema->is_number_integer()) {
    return failed("no integer field 'schema'");
  }
  if (*schema != kSchemaVersion) {
    return failed(fmt::format("schema {}: this version of Reckon reads schema {}", schema->dump(),
                              kSchemaVersion));
  }
  for (const auto& [key, value] : line.items()) {
    constexpr std::array kFields{"body", "entry", "schema", "time", "type", "writer"};
    if (std::find(kFields.begin(), kFields.end(), key) == kFields.end()) {
      return failed(fmt::format("unknown field '{}'", key));
    }
  }
  Event event;
  TRY_ASSIGN(const std::string type, text_field(line, "type"));
  TRY_ASSIGN(event.type, parse_event_type(type));
  TRY_ASSIGN(event.entry, text_field(line, "entry"));
  TRY_ASSIGN(event.time, text_field(line, "time"));
  TRY_ASSIGN(event.writer, text_field(line, "writer"));
  if (!line.contains("body")) return failed("no field 'body'");
  event.body = std::move(line["body"]);
  TRY(check_event(event));
  return SummedEvent{std::move(event), stated};
}

}  // namespace

std::string_view event_type_name(EventType type) {
  for (const auto& [value, name] : kTypeNames) {
    if (value == type) return name;
  }
  RECKON_CHECK(false);
}

Result<EventType> parse_event_type(std::string_view name) {
  for (const auto& [value, known] : kTypeNames) {
    if (known == name) return value;
  }
  return failed(fmt::format("unknown event type '{}'", one_line(name)));
}

bool is_entry_id(std::string_view id) {
  return id.size() == kIdPrefix.size() + kIdCharacters && id.starts_with(kIdPrefix) &&
         std::all_of(id.begin() + kIdPrefix.size(), id.end(), is_base32);
}

bool creates_entry(EventType type) {
  return type == EventType::kIdea || type == EventType::kImported;
}

Result<std::string> canonical_json(const nlohmann::json& value) {
  TRY(check_values(value, 0));
  try {
    return value.dump();  // objects are sorted maps; numbers take their shortest exact form
  } catch (const nlohmann::json::exception& exception) {
    return failed(fmt::format("text that is not UTF-8: {}", exception.what()));
  }
}

Result<std::string> entry_id_of(const Event& event) {
  nlohmann::json line = to_json(event);
  line.erase("entry");
  TRY_ASSIGN(const std::string canonical, canonical_json(line));
  return std::string(kIdPrefix) + Hasher().add(canonical).base32(kIdCharacters);
}

Result<Event> make_first_event(EventType type, nlohmann::json body, std::string writer,
                               std::string time) {
  RECKON_CHECK(creates_entry(type));
  Event event = make_event(type, "", std::move(body), std::move(writer), std::move(time));
  TRY_ASSIGN(event.entry, entry_id_of(event));
  return event;
}

Event make_event(EventType type, std::string entry, nlohmann::json body, std::string writer,
                 std::string time) {
  return Event{type,          std::move(entry), std::move(time), std::move(writer), std::move(body),
               kSchemaVersion};
}

Result<std::string> checksum(const Event& event) {
  TRY_ASSIGN(const std::string canonical, canonical_json(to_json(event)));
  return hash_hex(canonical);
}

Result<std::string> event_line(const Event& event) {
  TRY(check_event(event));
  nlohmann::json line = to_json(event);
  TRY_ASSIGN(line["sum"], checksum(event));
  return canonical_json(line);
}

Result<Event> parse_event_line(std::string_view line, std::string_view where) {
  TRY_ASSIGN(SummedEvent summed, parse_summed_line(line, where));
  return std::move(summed.event);
}

Result<SummedEvent> parse_summed_line(std::string_view line, std::string_view where) {
  nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  Result<SummedEvent> event = json.is_discarded() ? failed("not a line of JSON: expected one event")
                                                  : event_from_json(std::move(json));
  if (!event.ok()) return failed(fmt::format("{}: {}", where, event.error().message));
  return event;
}

Status check_event(const Event& event) {
  if (event.schema != kSchemaVersion) {
    return failed(fmt::format("schema {}: expected {}", event.schema, kSchemaVersion));
  }
  if (!is_entry_id(event.entry)) {
    return failed(fmt::format("'{}' is not an entry id: expected rk- and {} characters of a-z, 2-7",
                              one_line(event.entry), kIdCharacters));
  }
  if (!is_timestamp(event.time)) {
    return failed(fmt::format("'{}' is not a time: expected the form 2026-09-14T08:30:00Z",
                              one_line(event.time)));
  }
  if (!is_writer_name(event.writer)) {
    return failed(fmt::format("'{}' is not a writer name: expected a-z, 0-9 and '-'",
                              one_line(event.writer)));
  }
  if (!event.body.is_object()) {
    return failed(fmt::format("body is a {}: expected an object", event.body.type_name()));
  }
  if (creates_entry(event.type)) {
    TRY_ASSIGN(const std::string id, entry_id_of(event));
    if (id != event.entry) {
      return failed(fmt::format("event creates {} and says {}", id, event.entry));
    }
  }
  return {};
}

Result<std::string> resolve_id(std::string_view prefix, std::span<const std::string> ids) {
  std::string_view characters = prefix;
  if (characters.starts_with(kIdPrefix)) characters.remove_prefix(kIdPrefix.size());
  if (characters.size() < kShortestPrefix) {
    return usage_error(
        fmt::format("'{}' is too short for an entry id: expected at least {} "
                    "characters after rk-",
                    prefix, kShortestPrefix));
  }
  const std::string full = std::string(kIdPrefix).append(characters);
  std::vector<std::string> candidates;
  for (const std::string& id : ids) {
    if (id.starts_with(full)) candidates.push_back(id);
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  if (candidates.empty()) {
    return usage_error(fmt::format("no entry '{}' in this ledger", prefix));
  }
  if (candidates.size() == 1) return candidates.front();
  const size_t listed = std::min(candidates.size(), kMostListed);
  return usage_error(fmt::format("'{}' names {} entries: {}{}", prefix, candidates.size(),
                                 join(std::span(candidates).first(listed), ", "),
                                 listed < candidates.size() ? ", ..." : ""));
}

}  // namespace reckon::ledger
