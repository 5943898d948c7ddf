#include "ledger/sqlite/indexed_catalog.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "ledger/sqlite/database.h"
#include "ledger/sqlite/entry_rows.h"
#include "ledger/sqlite/event_rows.h"
#include "ledger/sqlite/index_file.h"

namespace reckon::ledger::sqlite {
namespace {

struct Candidates {
  std::set<std::string> ids;
  size_t near = 0;  // entries of the same switch in another scope
};

struct Ranked {
  size_t differences;
  size_t place;
  std::string id;
  bool operator<(const Ranked& other) const {
    return std::pair(differences, place) < std::pair(other.differences, other.place);
  }
};

class IndexedCatalog : public Catalog {
 public:
  IndexedCatalog(const Store& store, IndexFile file, EventRows rows,
                 std::vector<std::string> warnings)
      : store_(store),
        file_(std::move(file)),
        rows_(std::move(rows)),
        warnings_(std::move(warnings)) {}

  Result<std::vector<Summary>> list() override {
    return answered(&IndexedCatalog::find_all, &Catalog::list);
  }
  Result<Entry> entry(std::string_view prefix) override {
    return answered(&IndexedCatalog::find_entry, &Catalog::entry, prefix);
  }
  Result<Consultation> consult(const Query& query) override {
    return answered(&IndexedCatalog::find_consultation, &Catalog::consult, query);
  }
  Result<std::vector<Entry>> of_class(const Scope& scope) override {
    return answered(&IndexedCatalog::find_class, &Catalog::of_class, scope);
  }
  Result<bool> has_round(std::string_view round) override {
    return answered(&IndexedCatalog::find_round, &Catalog::has_round, round);
  }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  // By the index; from the lines alone where it fails or disagrees with them.
  template <typename Find, typename Ask, typename... Arguments>
  auto answered(Find find, Ask ask, const Arguments&... arguments)
      -> decltype((this->*find)(arguments...)) {
    if (!lines_) {
      auto found = (this->*find)(arguments...);
      if (found.ok() || found.error().kind == ErrorKind::kUsage) return found;
      TRY_ASSIGN(lines_, open_catalog_without_index(store_));
    }
    return ((*lines_).*ask)(arguments...);
  }

  Result<std::vector<Summary>> find_all() {
    std::vector<Summary> summaries;
    TRY_ASSIGN(Statement rows, file_.database().prepare(std::string("SELECT ") + kSummaryColumns +
                                                        " FROM entries ORDER BY place"));
    while (true) {
      TRY_ASSIGN(const bool more, rows.step());
      if (!more) return summaries;
      summaries.push_back(read_summary(rows));
    }
  }

  Result<Entry> find_entry(std::string_view prefix) {
    constexpr std::string_view kIdPrefix = "rk-";
    std::string from(prefix.starts_with(kIdPrefix) ? prefix.substr(kIdPrefix.size()) : prefix);
    from.insert(0, kIdPrefix);
    TRY_ASSIGN(const std::vector<std::string> ids,
               texts("SELECT id FROM entries WHERE id >= ?1 AND id < ?1 || '~'", from));
    TRY_ASSIGN(const std::string id, resolve_id(prefix, ids));
    TRY_ASSIGN(const Ledger ledger, load({id}));
    const Entry* entry = ledger.find(id);
    if (entry == nullptr) return failed(id + ": in the index, but not in the lines");
    return *entry;
  }

  Result<Consultation> find_consultation(const Query& query) {
    TRY_ASSIGN(Candidates candidates, this->candidates(query));
    TRY_ASSIGN(const Ledger ledger, load(std::move(candidates.ids)));
    Consultation answer = ledger::consult(ledger.entries, query);
    answer.near_count = candidates.near;
    return answer;
  }

  Result<std::vector<Entry>> find_class(const Scope& scope) {
    TRY_ASSIGN(const std::vector<std::string> ids,
               texts("SELECT id FROM entries WHERE noise_id = ?1", noise_id(scope)));
    TRY_ASSIGN(const Ledger ledger, load({ids.begin(), ids.end()}));
    return entries_of_class(ledger, scope);
  }

  Result<bool> find_round(std::string_view round) {
    TRY_ASSIGN(const std::vector<std::string> ids,
               texts("SELECT DISTINCT entry FROM events WHERE round = ?1", round));
    TRY_ASSIGN(const Ledger ledger, load({ids.begin(), ids.end()}));
    return holds_round(ledger, round);
  }

  // All that can block, join, be offered or be among the nearest.
  Result<Candidates> candidates(const Query& query) {
    TRY_ASSIGN(Candidates found, nearest(query.scope));
    TRY_ASSIGN(const std::vector<std::string> same,
               texts("SELECT id FROM entries WHERE scope_id = ?1", scope_id(query.scope)));
    found.ids.insert(same.begin(), same.end());
    TRY_ASSIGN(
        Statement rows,
        file_.database().prepare("SELECT c.entry, c.predicate FROM entries e JOIN conditions c ON "
                                 "c.entry = e.id WHERE e.switch = ?1"));
    rows.bind(query.scope.switch_key);
    Facts now = query.facts;
    now.merge(facts_of(query.scope));
    while (true) {
      TRY_ASSIGN(const bool more, rows.step());
      if (!more) return found;
      const Result<Predicate> predicate = parse_predicate(rows.text(1));
      if (predicate.ok() && holds(*predicate, now)) found.ids.emplace(rows.text(0));
    }
  }

  Result<Candidates> nearest(const Scope& scope) {
    Candidates found;
    if (scope.switch_key.empty()) return found;
    TRY_ASSIGN(
        Statement rows,
        file_.database().prepare("SELECT id, scope FROM entries WHERE switch = ?1 ORDER BY place"));
    rows.bind(scope.switch_key);
    const std::string flat = flat_scope(scope);
    std::set<Ranked> best;
    while (true) {
      TRY_ASSIGN(const bool more, rows.step());
      if (!more) break;
      const size_t differences = differing_fields(flat, rows.text(1));
      if (differences == 0) continue;
      ++found.near;
      if (best.size() == kNearest && differences >= best.rbegin()->differences) continue;
      best.insert({differences, found.near, std::string(rows.text(0))});
      if (best.size() > kNearest) best.erase(std::prev(best.end()));
    }
    for (const Ranked& ranked : best) found.ids.insert(ranked.id);
    return found;
  }

  Result<Ledger> load(std::set<std::string> ids) {
    TRY(rows_.complete(ids));
    TRY_ASSIGN(const std::vector<Event> events, rows_.read(ids));
    return fold(events);
  }

  Result<std::vector<std::string>> texts(const char* sql, std::string_view argument) {
    TRY_ASSIGN(Statement rows, file_.database().prepare(sql));
    return rows.bind(argument).texts();
  }

  const Store& store_;
  IndexFile file_;
  EventRows rows_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Catalog> lines_;  // once the index has failed
};

Result<std::vector<std::string>> read_warnings(Database& database) {
  TRY_ASSIGN(Statement rows,
             database.prepare("SELECT text FROM (SELECT p.torn AS kind, f.name AS name, p.rowid AS "
                              "at, p.text AS text FROM problems p JOIN files f ON f.id = p.file "
                              "UNION ALL SELECT 2, '', rowid, text FROM warnings) "
                              "ORDER BY kind, name, at"));
  return rows.texts();
}

}  // namespace

Result<std::unique_ptr<Catalog>> open_indexed_catalog(const Store& store) {
  const std::filesystem::path folder = store.indexed_folder();
  TRY_ASSIGN(IndexFile file, IndexFile::open(folder));
  TRY_ASSIGN(EventRows rows, EventRows::create(file.database(), folder));
  TRY_ASSIGN(std::vector<std::string> warnings, read_warnings(file.database()));
  return std::unique_ptr<Catalog>(std::make_unique<IndexedCatalog>(
      store, std::move(file), std::move(rows), std::move(warnings)));
}

}  // namespace reckon::ledger::sqlite
