// A connection to PostgreSQL and what a query gave back. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct pg_conn;
struct pg_result;

namespace reckon::ledger::postgres {

class Rows {
 public:
  explicit Rows(pg_result* result) : result_(result, clear) {}
  [[nodiscard]] int count() const;
  [[nodiscard]] std::string_view text(int row, int column) const;  // as long as the rows live
  [[nodiscard]] bool is_null(int row, int column) const;

 private:
  static void clear(pg_result* result);
  std::unique_ptr<pg_result, void (*)(pg_result*)> result_;
};

class Connection {
 public:
  // `name` stands in messages for the URL, which may hold a password.
  [[nodiscard]] static Result<Connection> open(const std::string& url, const std::string& name);
  // One statement with $1, $2, …
  [[nodiscard]] Result<Rows> run(const char* sql, const std::vector<std::string>& values = {});

 private:
  Connection(pg_conn* handle, std::string name);
  static void finish(pg_conn* handle);
  [[nodiscard]] Error error() const;
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> handle_;
  std::string name_;
};

}  // namespace reckon::ledger::postgres
