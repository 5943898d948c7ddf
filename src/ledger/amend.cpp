#include "ledger/amend.h"

#include <fmt/format.h>

#include <utility>

#include "ledger/chain.h"

namespace reckon::ledger {
namespace {

Status check_reason(const std::string& reason) {
  const bool blank = reason.find_first_not_of(" \t\n") == std::string::npos;
  return blank ? Status(usage_error("the reason is empty: say in a sentence why")) : Status();
}

Event status_event(EventType type, const Entry& entry, const StatusBody& body,
                   const Signature& signature) {
  return make_event(type, entry.id, encode(body), signature.writer, signature.time);
}

Error already(const Entry& entry) {
  return usage_error(fmt::format("{} is {} already: {}", entry.id, entry_status_name(entry.status),
                                 entry.status_reason));
}

bool states_a_field(const NoteBody& note) {
  return !note.mechanism.empty() || !note.evidence.empty() || !note.revisit_when.empty() ||
         !note.conditions.empty() || !note.lever.empty() || !note.lever_entry.empty();
}

}  // namespace

Result<Event> overturn(Catalog& catalog, std::string_view entry, const std::string& reason,
                       const Signature& signature) {
  TRY(check_reason(reason));
  TRY_ASSIGN(const Entry found, catalog.entry(entry));
  if (found.status == EntryStatus::kOverturned) return already(found);
  return status_event(EventType::kOverturned, found, {.reason = reason, .by = ""}, signature);
}

Result<Event> reopen(Catalog& catalog, std::string_view entry, const std::string& reason,
                     const Signature& signature) {
  TRY(check_reason(reason));
  TRY_ASSIGN(const Entry found, catalog.entry(entry));
  if (found.status == EntryStatus::kReopened) return already(found);
  if (found.status == EntryStatus::kOpen && !found.verdict) {
    return usage_error(found.id + " has no verdict yet: there is nothing to reopen");
  }
  return status_event(EventType::kReopened, found, {.reason = reason, .by = ""}, signature);
}

Result<Event> supersede(Catalog& catalog, std::string_view entry, std::string_view by,
                        const std::string& reason, const Signature& signature) {
  TRY(check_reason(reason));
  TRY_ASSIGN(const Entry found, catalog.entry(entry));
  TRY_ASSIGN(const Entry successor, catalog.entry(by));
  if (successor.id == found.id) return usage_error("an entry cannot supersede itself");
  if (found.superseded_by == successor.id) {
    return usage_error(fmt::format("{} is superseded by {} already", found.id, successor.id));
  }
  TRY_ASSIGN(std::vector<Summary> entries, catalog.list());
  for (const Summary& later : Chains(std::move(entries)).of(successor.id).superseded_by) {
    if (later.id == found.id) {
      return usage_error(fmt::format("{} is itself superseded by {}, directly or over others",
                                     successor.id, found.id));
    }
  }
  return status_event(EventType::kSuperseded, found, {.reason = reason, .by = successor.id},
                      signature);
}

Result<Event> add_note(Catalog& catalog, std::string_view entry, NoteBody note,
                       const Signature& signature) {
  TRY_ASSIGN(const Entry found, catalog.entry(entry));
  if (note.text.empty() && !states_a_field(note)) {
    return usage_error("the note is empty: give a text, a mechanism, conditions or a lever");
  }
  if (!found.verdict && states_a_field(note)) {
    return usage_error(found.id +
                       " has no verdict yet, and a mechanism, evidence, conditions and a "
                       "lever belong to one: give a text");
  }
  for (const std::string& predicate : note.revisit_when) TRY(parse_predicate(predicate));
  if (!note.lever_entry.empty()) {
    TRY_ASSIGN(const Entry lever, catalog.entry(note.lever_entry));
    if (lever.id == found.id) return usage_error("an entry cannot be its own lever");
    note.lever_entry = lever.id;
  }
  return make_event(EventType::kNote, found.id, encode(note), signature.writer, signature.time);
}

}  // namespace reckon::ledger
