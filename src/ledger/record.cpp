#include "ledger/record.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "ledger/predicate.h"
#include "ledger/record_fields.h"

namespace reckon::ledger {
namespace {

Status check_predicates(const std::vector<std::string>& predicates) {
  for (const std::string& text : predicates) TRY(parse_predicate(text));
  return {};
}

Status check_entry_link(const std::string& id, const char* field) {
  if (id.empty() || is_entry_id(id)) return {};
  return failed(fmt::format("{} '{}' is not an entry id", field, id));
}

Status check(const IdeaBody& idea) {
  const bool names_switch = !idea.scope.switch_key.empty();
  if (idea.kind != EntryKind::kFloor && !names_switch) {
    return failed("scope.switch is empty: expected the switch that the arms differ in");
  }
  if (idea.kind == EntryKind::kFloor && names_switch) {
    return failed("scope.switch is set: identical arms differ in no switch");
  }
  if (idea.claim && *idea.claim <= 0) return failed("claim: expected a share above zero");
  return {};
}

Status check(const MeasuredBody& measured) {
  if (measured.round.id.empty()) return failed("round.id is empty: expected a unique id");
  return {};
}

Status check(const VerdictBody& verdict) {
  if ((verdict.verdict == Verdict::kVoid) != verdict.void_reason.has_value()) {
    return failed("void_reason: expected exactly where the verdict is VOID");
  }
  TRY(check_predicates(verdict.revisit_when));
  return check_entry_link(verdict.lever_entry, "lever_entry");
}

Status check(const NoteBody& note) {
  TRY(check_predicates(note.revisit_when));
  return check_entry_link(note.lever_entry, "lever_entry");
}

Status check(const StatusBody& status) {
  return check_entry_link(status.by, "by");
}

Status check(const ImportedBody& imported) {
  return imported.result ? check(*imported.result) : Status();
}

template <typename Body>
Result<Body> decode_checked(const nlohmann::json& json) {
  TRY_ASSIGN(Body body, decode<Body>(json));
  TRY(check(body));
  return body;
}

Status check_superseded(const nlohmann::json& json) {
  TRY_ASSIGN(const StatusBody body, decode_checked<StatusBody>(json));
  if (body.by.empty()) return failed("by is empty: expected the entry that supersedes this one");
  return {};
}

template <typename Body>
Status check_as(const nlohmann::json& json) {
  TRY(decode_checked<Body>(json));
  return {};
}

Status check_json(EventType type, const nlohmann::json& json) {
  switch (type) {
    case EventType::kIdea:
      return check_as<IdeaBody>(json);
    case EventType::kMeasured:
      return check_as<MeasuredBody>(json);
    case EventType::kVerdict:
      return check_as<VerdictBody>(json);
    case EventType::kNote:
      return check_as<NoteBody>(json);
    case EventType::kOverturned:
    case EventType::kReopened:
      return check_as<StatusBody>(json);
    case EventType::kSuperseded:
      return check_superseded(json);
    case EventType::kImported:
      return check_as<ImportedBody>(json);
  }
  return failed("unknown event type");
}

}  // namespace

std::string_view entry_kind_name(EntryKind kind) {
  return codec::name_of(kind);
}

std::string_view verdict_name(Verdict verdict) {
  return codec::name_of(verdict);
}

Result<Verdict> parse_verdict(std::string_view name) {
  if (const auto verdict = codec::value_of<Verdict>(name)) return *verdict;
  return usage_error(
      fmt::format("'{}' is not a verdict: expected WON, LOST, NEUTRAL, "
                  "INCONCLUSIVE, VOID, BROKE or OUT-OF-MEMORY",
                  name));
}

template <typename Body>
nlohmann::json encode(const Body& body) {
  return codec::Writer::write(body, codec::Empties::kOmit);
}

template <typename Body>
Result<Body> decode(const nlohmann::json& json) {
  Body body;
  TRY(codec::Reader::read(json, body, ""));
  return body;
}

template nlohmann::json encode(const IdeaBody&);
template nlohmann::json encode(const MeasuredBody&);
template nlohmann::json encode(const VerdictBody&);
template nlohmann::json encode(const NoteBody&);
template nlohmann::json encode(const StatusBody&);
template nlohmann::json encode(const ImportedBody&);
template Result<IdeaBody> decode(const nlohmann::json&);
template Result<MeasuredBody> decode(const nlohmann::json&);
template Result<VerdictBody> decode(const nlohmann::json&);
template Result<NoteBody> decode(const nlohmann::json&);
template Result<StatusBody> decode(const nlohmann::json&);
template Result<ImportedBody> decode(const nlohmann::json&);

Status check_body(const Event& event) {
  Status status = check_json(event.type, event.body);
  if (status.ok()) return status;
  return failed(fmt::format("{} event of {}: {}", event_type_name(event.type), event.entry,
                            status.error().message));
}

std::vector<std::string> body_errors(std::span<const Event> events, const std::string& location) {
  std::vector<std::string> errors;
  for (const Event& event : events) {
    if (const Status status = check_body(event); !status.ok()) {
      errors.push_back(fmt::format("{}: {}", location, status.error().message));
    }
  }
  return errors;
}

}  // namespace reckon::ledger
