#include "ledger/postgres/postgres_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ledger/postgres/connection.h"
#include "ledger/read_order.h"
#include "ledger/record.h"

namespace reckon::ledger {
namespace {

using postgres::Connection;
using postgres::Rows;

constexpr const char* kHidden = "***";
constexpr const char* kCreateTable =
    "CREATE TABLE IF NOT EXISTS reckon_events(seq bigint GENERATED ALWAYS AS IDENTITY, "
    "sum text PRIMARY KEY, line text NOT NULL)";
// The lock serialises appends, so that seq is the order of commits; the key is ours alone.
constexpr const char* kLock = "SELECT pg_advisory_xact_lock(5139827164)";
constexpr const char* kInsert =
    "INSERT INTO reckon_events(sum, line) VALUES($1, $2) ON CONFLICT (sum) DO NOTHING";
constexpr const char* kExists = "SELECT to_regclass('reckon_events')";
constexpr const char* kSelect = "SELECT seq, sum, line FROM reckon_events ORDER BY seq";

struct Row {
  std::string sum;
  std::string line;
};

// What a walk over the table found.
struct Walk {
  std::vector<Event> events;
  std::vector<std::string> errors;
};

class PostgresStore : public Store {
 public:
  explicit PostgresStore(std::string_view url) : url_(url), location_(without_password(url)) {}

  Result<AppendReport> append(std::span<const Event> events) override {
    std::vector<Row> rows;
    for (const Event& event : events) {
      TRY(check_body(event));
      Row row;
      TRY_ASSIGN(row.line, event_line(event));
      TRY_ASSIGN(row.sum, checksum(event));
      rows.push_back(std::move(row));
    }
    AppendReport report;
    if (rows.empty()) return report;
    TRY_ASSIGN(Connection connection, Connection::open(url_, location_));
    TRY(connection.run("BEGIN"));  // rolled back where the connection ends before COMMIT
    TRY(connection.run(kLock));
    TRY(connection.run(kCreateTable));
    for (const Row& row : rows) TRY(connection.run(kInsert, {row.sum, row.line}));
    TRY(connection.run("COMMIT"));
    report.appended = rows.size();
    return report;
  }

  Result<ReadReport> read() const override {
    TRY_ASSIGN(Walk walk, this->walk());
    ReadReport report;
    report.events = in_read_order(std::move(walk.events));
    report.warnings = std::move(walk.errors);
    return report;
  }

  Result<VerifyReport> verify() const override {
    TRY_ASSIGN(Walk walk, this->walk());
    VerifyReport report;
    report.events = walk.events.size();
    report.errors = std::move(walk.errors);
    const std::vector<std::string> bodies = body_errors(walk.events, location_);
    report.errors.insert(report.errors.end(), bodies.begin(), bodies.end());
    return report;
  }

  const std::string& location() const override { return location_; }

 private:
  Result<Walk> walk() const {
    Walk walk;
    TRY_ASSIGN(Connection connection, Connection::open(url_, location_));
    TRY_ASSIGN(const Rows table, connection.run(kExists));
    if (table.is_null(0, 0)) return walk;
    TRY_ASSIGN(const Rows rows, connection.run(kSelect));
    for (int i = 0; i < rows.count(); ++i) {
      const std::string where = fmt::format("{}: row {}", location_, rows.text(i, 0));
      Result<SummedEvent> event = parse_summed_line(rows.text(i, 2), where);
      if (!event.ok()) {
        walk.errors.push_back(event.error().message);
      } else if (event->sum != rows.text(i, 1)) {
        walk.errors.push_back(where + ": its sum is that of another line");
      } else {
        walk.events.push_back(std::move(event->event));
      }
    }
    return walk;
  }

  std::string url_;
  std::string location_;
};

}  // namespace

bool is_postgres_url(std::string_view location) {
  return location.starts_with("postgres://") || location.starts_with("postgresql://");
}

std::string without_password(std::string_view url) {
  std::string shown(url);
  const size_t start = shown.find("://") + 3;
  const size_t end = shown.find_first_of("/?", start);
  const size_t at = shown.rfind('@', end);
  const size_t colon = shown.find(':', start);
  if (at != std::string::npos && at >= start && colon < at) {
    shown.replace(colon + 1, at - colon - 1, kHidden);
  }
  constexpr std::string_view kParameter = "password=";  // also of sslpassword
  for (size_t found = shown.find(kParameter); found != std::string::npos;
       found = shown.find(kParameter, found + 1)) {
    const size_t value = found + kParameter.size();
    shown.replace(value, std::min(shown.find('&', value), shown.size()) - value, kHidden);
  }
  return shown;
}

Result<std::unique_ptr<Store>> open_postgres_store(std::string_view url) {
  return std::unique_ptr<Store>(std::make_unique<PostgresStore>(url));
}

}  // namespace reckon::ledger
