#include "ledger/sqlite/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

namespace reckon::ledger::sqlite {
namespace {

constexpr int kWaitMs = 60000;

Error error_of(sqlite3* handle) {
  return failed(fmt::format("SQLite: {}", sqlite3_errmsg(handle)));
}

}  // namespace

void Statement::finalize(sqlite3_stmt* statement) {
  sqlite3_finalize(statement);
}

void Statement::restart() {
  sqlite3_reset(statement_.get());
}

void Statement::put(int at, int64_t value) {
  sqlite3_bind_int64(statement_.get(), at, value);
}

void Statement::put(int at, std::string_view value) {
  sqlite3_bind_text64(statement_.get(), at, value.data() == nullptr ? "" : value.data(),
                      value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void Statement::put(int at, const std::optional<double>& value) {
  if (value) {
    sqlite3_bind_double(statement_.get(), at, *value);
  } else {
    sqlite3_bind_null(statement_.get(), at);
  }
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) return error_of(sqlite3_db_handle(statement_.get()));
  restart();  // lets go of what it locked
  return false;
}

Status Statement::run() {
  bool more = true;
  while (more) {
    TRY_ASSIGN(more, step());
  }
  return {};
}

Result<std::vector<std::string>> Statement::texts() {
  std::vector<std::string> found;
  while (true) {
    TRY_ASSIGN(const bool more, step());
    if (!more) return found;
    found.emplace_back(text(0));
  }
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::number(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Result<Database> Database::open(const std::filesystem::path& path) {
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database database(handle);
  if (code != SQLITE_OK) {
    return failed(fmt::format("{}: SQLite: {}", path.string(), sqlite3_errstr(code)));
  }
  sqlite3_busy_timeout(handle, kWaitMs);
  return database;
}

void Database::close(sqlite3* handle) {
  sqlite3_close_v2(handle);
}

Status Database::run(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return error_of(handle_.get());
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return error_of(handle_.get());
  return Statement(statement);
}

int64_t Database::last_row() const {
  return sqlite3_last_insert_rowid(handle_.get());
}

}  // namespace reckon::ledger::sqlite
