#include "ledger/sqlite/entry_rows.h"

#include "ledger/consult.h"
#include "ledger/scope.h"

namespace reckon::ledger::sqlite {
namespace {

constexpr int64_t kNoVerdict = -1;
constexpr const char* kInsert =
    "INSERT INTO entries(id, kind, verdict, effect, metric, switch, base, arm, model, family, "
    "device, vendor, isa, idea, rounds, imported, status, superseded_by, lever_entry, created, "
    "updated, writer, place, scope_id, noise_id, scope) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
    "?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)";
constexpr size_t kIdCharacters = 15;

int64_t number_of(const std::optional<Verdict>& verdict) {
  return verdict ? static_cast<int64_t>(*verdict) : kNoVerdict;
}

}  // namespace

Summary read_summary(const Statement& row) {
  Summary summary;
  int at = 0;
  const auto text = [&] { return std::string(row.text(at++)); };
  summary.id = text();
  summary.kind = static_cast<EntryKind>(row.integer(at++));
  const int64_t verdict = row.integer(at++);
  if (verdict != kNoVerdict) summary.verdict = static_cast<Verdict>(verdict);
  if (!row.is_null(at)) summary.effect = row.number(at);
  ++at;
  summary.metric = text();
  summary.switch_key = text();
  summary.base_value = text();
  summary.arm_value = text();
  summary.model_name = text();
  summary.model_family = text();
  summary.device_name = text();
  summary.device_vendor = text();
  summary.device_isa = text();
  summary.idea = text();
  summary.rounds = row.integer(at++);
  summary.imported = row.integer(at++) != 0;
  summary.status = static_cast<EntryStatus>(row.integer(at++));
  summary.superseded_by = text();
  summary.lever_entry = text();
  summary.created = text();
  summary.updated = text();
  summary.writer = text();
  return summary;
}

Result<EntryWriter> EntryWriter::create(Database& database) {
  TRY_ASSIGN(Statement insert, database.prepare(kInsert));
  TRY_ASSIGN(Statement condition, database.prepare("INSERT INTO conditions VALUES(?1, ?2)"));
  TRY_ASSIGN(Statement warning, database.prepare("INSERT INTO warnings VALUES(?1, ?2)"));
  EntryWriter writer(std::move(insert), std::move(condition), std::move(warning));
  for (const char* sql :
       {"DELETE FROM entries WHERE id = ?1", "DELETE FROM conditions WHERE entry = ?1",
        "DELETE FROM warnings WHERE entry = ?1"}) {
    TRY_ASSIGN(Statement removal, database.prepare(sql));
    writer.removals_.push_back(std::move(removal));
  }
  return writer;
}

Status EntryWriter::remove(const std::string& id) {
  for (Statement& removal : removals_) TRY(removal.bind(id).run());
  return {};
}

Status EntryWriter::replace(const std::string& id, const Entry* entry, const std::string& place) {
  TRY(remove(id));
  if (entry == nullptr) return {};
  const Summary s = summary_of(*entry);
  const Scope& scope = entry->idea.scope;
  TRY(insert_
          .bind(s.id, static_cast<int64_t>(s.kind), number_of(s.verdict), s.effect, s.metric,
                s.switch_key, s.base_value, s.arm_value, s.model_name, s.model_family,
                s.device_name, s.device_vendor, s.device_isa, s.idea, s.rounds,
                static_cast<int64_t>(s.imported), static_cast<int64_t>(s.status), s.superseded_by,
                s.lever_entry, s.created, s.updated, s.writer, s.created + " " + place,
                scope_id(scope), noise_id(scope), flat_scope(scope))
          .run());
  for (const std::string& predicate : open_conditions(*entry)) {
    TRY(condition_.bind(id, predicate).run());
  }
  return {};
}

Status EntryWriter::add_warning(const std::string& text) {
  return warning_.bind(text.substr(0, kIdCharacters), text).run();
}

}  // namespace reckon::ledger::sqlite
