#include "ledger/postgres/connection.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <array>
#include <memory>
#include <utility>

#include "base/text.h"

namespace reckon::ledger::postgres {
namespace {

// libpq quotes the part of a URL that it cannot read, which may be the password: what it says is
// shown only where `name` hides nothing.
Status check_url(const std::string& url, const std::string& name) {
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      PQconninfoParse(url.c_str(), &message), PQconninfoFree);
  const std::unique_ptr<char, void (*)(void*)> owned(message, PQfreemem);
  if (options) return {};
  if (name == url && message != nullptr) {
    std::string text = one_line(message);
    while (text.ends_with(' ')) text.pop_back();
    return usage_error(fmt::format("{}: {}", name, text));
  }
  return usage_error(name +
                     ": no URL that PostgreSQL can read: what a password has beside letters and "
                     "digits must be percent-encoded (%25 is a percent sign, %40 an at sign)");
}

}  // namespace

int Rows::count() const {
  return PQntuples(result_.get());
}

std::string_view Rows::text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

bool Rows::is_null(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

void Rows::clear(pg_result* result) {
  PQclear(result);
}

Connection::Connection(pg_conn* handle, std::string name)
    : handle_(handle, finish), name_(std::move(name)) {}

void Connection::finish(pg_conn* handle) {
  PQfinish(handle);
}

Error Connection::error() const {
  std::string message = one_line(PQerrorMessage(handle_.get()));
  while (message.ends_with(' ')) message.pop_back();
  return failed(fmt::format("{}: {}", name_, message));
}

Result<Connection> Connection::open(const std::string& url, const std::string& name) {
  TRY(check_url(url, name));
  // What the URL says comes last and wins.
  const std::array<const char*, 4> keywords{"connect_timeout", "client_encoding", "dbname",
                                            nullptr};
  const std::array<const char*, 4> values{"10", "UTF8", url.c_str(), nullptr};
  Connection connection(PQconnectdbParams(keywords.data(), values.data(), /*expand_dbname=*/1),
                        name);
  if (PQstatus(connection.handle_.get()) != CONNECTION_OK) return connection.error();
  // Notices ("table exists, skipping") are not for our standard error.
  PQsetNoticeProcessor(
      connection.handle_.get(), [](void*, const char*) {}, nullptr);
  return connection;
}

Result<Rows> Connection::run(const char* sql, const std::vector<std::string>& values) {
  std::vector<const char*> texts;
  texts.reserve(values.size());
  for (const std::string& value : values) texts.push_back(value.c_str());
  pg_result* result = PQexecParams(handle_.get(), sql, static_cast<int>(values.size()), nullptr,
                                   texts.data(), nullptr, nullptr, /*resultFormat=*/0);
  Rows rows(result);
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) return error();
  return rows;
}

}  // namespace reckon::ledger::postgres
