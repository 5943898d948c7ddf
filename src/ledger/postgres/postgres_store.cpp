#include "ledger/postgres/postgres_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "ledger/locate.h"
#include "ledger/postgres/connection.h"
#include "ledger/read_order.h"
#include "ledger/record.h"

namespace reckon::ledger {
namespace {

using postgres::Connection;
using postgres::Rows;

constexpr std::string_view kSchemeMark = "://";
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

enum class Password { kHidden, kLeftOut };

// It may stand behind the user's name, which libpq looks for before the first slash, and in
// parameters, sslpassword among them.
std::string with_password(std::string_view url, Password password) {
  const bool hidden = password == Password::kHidden;
  const size_t start = url.find(kSchemeMark) + kSchemeMark.size();
  const size_t mark_of_user = url.find_first_of("@/", start);
  const bool has_user = mark_of_user != std::string_view::npos && url[mark_of_user] == '@';
  const size_t at = has_user ? url.rfind('@', url.find_first_of("/?", mark_of_user)) : start;
  const size_t colon = url.find(':', start);
  const size_t query = std::min(url.find('?', at), url.size());
  std::string text(url.substr(0, query));
  if (has_user && colon < at) text.replace(colon, at - colon, hidden ? ":***" : "");
  if (query == url.size()) return text;
  char mark = '?';
  for (const std::string& parameter : split(url.substr(query + 1), '&')) {
    const std::string key = parameter.substr(0, parameter.find('='));
    const bool secret = key.ends_with("password");
    if (secret && !hidden) continue;
    text += mark + (secret ? key + "=***" : parameter);
    mark = '&';
  }
  return text;
}

class PostgresStore : public Store {
 public:
  explicit PostgresStore(std::string_view url) : url_(url), location_(hidden_password(url)) {}

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

  Result<std::filesystem::path> local_folder() const override {
    constexpr size_t kKeyCharacters = 20;
    TRY_ASSIGN(const std::filesystem::path state, state_folder());
    const std::string url = without_password(url_);
    const std::string place = url.substr(url.find(kSchemeMark));  // of either spelling
    return state / "ledgers" / Hasher().add_field(place).base32(kKeyCharacters);
  }

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

std::string hidden_password(std::string_view url) {
  return with_password(url, Password::kHidden);
}

std::string without_password(std::string_view url) {
  return with_password(url, Password::kLeftOut);
}

Result<std::unique_ptr<Store>> open_postgres_store(std::string_view url) {
  return std::unique_ptr<Store>(std::make_unique<PostgresStore>(url));
}

}  // namespace reckon::ledger
