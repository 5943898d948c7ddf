#include "ledger/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/hash.h"

namespace reckon::ledger {
namespace {

template <typename T>
void set_if_stated(T& target, const T& value) {
  if (!value.empty()) target = value;
}

template <typename T>
void set_if_empty(T& target, const T& value) {
  if (target.empty()) target = value;
}

void amend(VerdictBody& verdict, const NoteBody& note) {
  set_if_stated(verdict.mechanism, note.mechanism);
  set_if_stated(verdict.evidence, note.evidence);
  set_if_stated(verdict.revisit_when, note.revisit_when);
  set_if_stated(verdict.conditions, note.conditions);
  set_if_stated(verdict.lever, note.lever);
  set_if_stated(verdict.lever_entry, note.lever_entry);
}

// More rounds that lead to the same verdict do not undo what people wrote about it.
void carry_over(VerdictBody& verdict, const VerdictBody& previous) {
  if (verdict.verdict != previous.verdict) return;
  set_if_empty(verdict.mechanism, previous.mechanism);
  set_if_empty(verdict.evidence, previous.evidence);
  set_if_empty(verdict.revisit_when, previous.revisit_when);
  set_if_empty(verdict.conditions, previous.conditions);
  set_if_empty(verdict.lever, previous.lever);
  set_if_empty(verdict.lever_entry, previous.lever_entry);
}

class Folder {
 public:
  Ledger run(std::span<const Event> events) {
    // Entries first: a colleague's clock may be behind the clock of whoever created the entry.
    for (const Event& event : events) {
      if (creates_entry(event.type)) use(event);
    }
    for (const Event& event : events) {
      if (!creates_entry(event.type)) use(event);
    }
    std::stable_sort(ledger_.entries.begin(), ledger_.entries.end(),
                     [](const Entry& a, const Entry& b) { return a.created < b.created; });
    return std::move(ledger_);
  }

 private:
  void use(const Event& event) {
    Status status = check_body(event);
    if (status.ok()) status = apply(event);
    if (!status.ok()) {
      ledger_.warnings.push_back(fmt::format("{} by {} at {} left out: {}", event.entry,
                                             event.writer, event.time, status.error().message));
    }
  }

  Status apply(const Event& event) {
    if (creates_entry(event.type)) return create(event);
    const auto found = index_.find(event.entry);
    if (found == index_.end()) return failed("no event creates this entry");
    Entry& entry = ledger_.entries[found->second];
    switch (event.type) {
      case EventType::kMeasured:
        TRY(add_round(entry, event));
        break;
      case EventType::kVerdict:
        TRY(add_verdict(entry, event));
        break;
      case EventType::kNote:
        TRY(add_note(entry, event));
        break;
      case EventType::kOverturned:
      case EventType::kReopened:
      case EventType::kSuperseded:
        TRY(change_status(entry, event));
        break;
      case EventType::kIdea:
      case EventType::kImported:
        break;
    }
    entry.updated = std::max(entry.updated, event.time);
    return {};
  }

  Status create(const Event& event) {
    if (index_.contains(event.entry)) return {};  // the id is the hash: the same event again
    Entry entry;
    entry.id = event.entry;
    entry.created = entry.updated = event.time;
    entry.writer = event.writer;
    if (event.type == EventType::kImported) {
      TRY_ASSIGN(ImportedBody body, decode<ImportedBody>(event.body));
      entry.imported = true;
      entry.import_source = std::move(body.source);
      entry.figures = std::move(body.figures);
      entry.idea = std::move(body.idea);
      entry.verdict = std::move(body.result);
      if (entry.verdict) entry.verdict_time = event.time;
    } else {
      TRY_ASSIGN(entry.idea, decode<IdeaBody>(event.body));
    }
    index_.emplace(entry.id, ledger_.entries.size());
    ledger_.entries.push_back(std::move(entry));
    return {};
  }

  Status add_round(Entry& entry, const Event& event) {
    if (entry.imported) return failed("an imported entry cannot be measured here");
    if (entry.idea.kind == EntryKind::kTuning) return failed("a sweep has no rounds");
    TRY_ASSIGN(MeasuredBody body, decode<MeasuredBody>(event.body));
    TRY_ASSIGN(std::string content, canonical_json(event.body));
    const RoundOwner owner{entry.id, hash_hex(content)};
    const auto [known, is_new] = round_owners_.emplace(body.round.id, owner);
    if (!is_new) {
      if (known->second == owner) return {};
      return failed(
          fmt::format("round {} is already counted in {}", body.round.id, known->second.entry));
    }
    entry.rounds.push_back(std::move(body));
    return {};
  }

  Status add_verdict(Entry& entry, const Event& event) {
    if (entry.imported) return failed("an imported entry gets no verdict here");
    if (entry.idea.kind == EntryKind::kFloor) return failed("identical arms get no verdict");
    if (entry.idea.kind == EntryKind::kTuning) return failed("a sweep gets no verdict");
    TRY_ASSIGN(VerdictBody body, decode<VerdictBody>(event.body));
    if (entry.verdict) carry_over(body, *entry.verdict);
    entry.verdict = std::move(body);
    entry.verdict_time = event.time;
    if (entry.status == EntryStatus::kReopened) {
      entry.status = EntryStatus::kOpen;
      entry.status_reason.clear();
    }
    return {};
  }

  Status add_note(Entry& entry, const Event& event) {
    TRY_ASSIGN(NoteBody body, decode<NoteBody>(event.body));
    if (entry.verdict) amend(*entry.verdict, body);
    if (!body.text.empty()) {
      entry.notes.push_back({event.time, event.writer, std::move(body.text)});
    }
    return {};
  }

  Status change_status(Entry& entry, const Event& event) {
    TRY_ASSIGN(StatusBody body, decode<StatusBody>(event.body));
    const EntryStatus status = event.type == EventType::kReopened     ? EntryStatus::kReopened
                               : event.type == EventType::kOverturned ? EntryStatus::kOverturned
                                                                      : EntryStatus::kSuperseded;
    entry.history.push_back({status, event.time, event.writer, body.reason, body.by});
    if (status == EntryStatus::kSuperseded) {
      entry.superseded_by = body.by;
      if (entry.status != EntryStatus::kOpen && entry.status != EntryStatus::kSuperseded) return {};
    }
    if (status == EntryStatus::kReopened) entry.rounds_before = entry.rounds.size();
    entry.status = status;
    entry.status_reason = std::move(body.reason);
    return {};
  }

  struct RoundOwner {
    std::string entry;
    std::string content;  // hash
    bool operator==(const RoundOwner&) const = default;
  };

  Ledger ledger_;
  std::map<std::string, size_t> index_;
  std::map<std::string, RoundOwner> round_owners_;
};

}  // namespace

std::string_view entry_status_name(EntryStatus status) {
  switch (status) {
    case EntryStatus::kOpen:
      return "open";
    case EntryStatus::kOverturned:
      return "overturned";
    case EntryStatus::kReopened:
      return "reopened";
    case EntryStatus::kSuperseded:
      return "superseded";
  }
  RECKON_CHECK(false);
}

std::span<const MeasuredBody> Entry::counting_rounds() const {
  return std::span(rounds).subspan(rounds_before);
}

bool Entry::rests_on(const Round& round) const {
  if (!verdict || verdict->rounds.empty()) return true;
  return std::find(verdict->rounds.begin(), verdict->rounds.end(), round.id) !=
         verdict->rounds.end();
}

std::vector<std::string> Entry::unfinished_because() const {
  const bool dirty_round = std::any_of(rounds.begin(), rounds.end(), [](const MeasuredBody& round) {
    return round.environment.dirty;
  });
  std::vector<std::string> reasons;
  if (idea.kind == EntryKind::kFloor) {
    if (rounds.empty()) reasons.push_back("no rounds");
  } else if (idea.kind == EntryKind::kTuning) {
    return reasons;
  } else if (!verdict) {
    reasons.push_back("no verdict");
  } else if (verdict->mechanism.empty()) {
    reasons.push_back("no mechanism");
  }
  if (dirty_round || (verdict && verdict->environment.dirty)) {
    reasons.push_back("measured from a dirty tree");
  }
  return reasons;
}

const Entry* Ledger::find(std::string_view id) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.id == id; });
  return found == entries.end() ? nullptr : &*found;
}

Result<const Entry*> Ledger::resolve(std::string_view prefix) const {
  std::vector<std::string> ids;
  ids.reserve(entries.size());
  for (const Entry& entry : entries) ids.push_back(entry.id);
  TRY_ASSIGN(const std::string id, resolve_id(prefix, ids));
  return find(id);
}

Ledger fold(std::span<const Event> events) {
  return Folder().run(events);
}

bool same_noise(const Scope& a, const Scope& b) {
  return a.device == b.device && a.metric == b.metric && a.workload_class == b.workload_class;
}

std::string noise_id(const Scope& scope) {
  constexpr size_t kCharacters = 16;
  const std::string device =
      scope_to_json(scope)["device"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Hasher()
      .add_field(device)
      .add_field(scope.metric)
      .add_field(scope.workload_class)
      .base32(kCharacters);
}

std::vector<Entry> entries_of_class(const Ledger& ledger, const Scope& scope) {
  std::vector<Entry> entries;
  std::copy_if(ledger.entries.begin(), ledger.entries.end(), std::back_inserter(entries),
               [&](const Entry& entry) { return same_noise(entry.idea.scope, scope); });
  return entries;
}

bool holds_round(const Ledger& ledger, std::string_view round) {
  return std::any_of(ledger.entries.begin(), ledger.entries.end(), [&](const Entry& entry) {
    return std::any_of(entry.rounds.begin(), entry.rounds.end(),
                       [&](const MeasuredBody& body) { return body.round.id == round; });
  });
}

}  // namespace reckon::ledger
