// A thin owner of an SQLite database and its prepared statements. Not thread-safe; errors carry
// SQLite's own words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace reckon::ledger::sqlite {

class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement, finalize) {}

  // Binds the values to ?1, ?2, … and starts anew.
  template <typename... Values>
  Statement& bind(const Values&... values) {
    restart();
    int at = 0;
    (put(++at, values), ...);
    return *this;
  }
  // True where there is a row, whose columns are then read; false at the end.
  [[nodiscard]] Result<bool> step();
  // Runs to the end.
  [[nodiscard]] Status run();
  // Runs to the end and gives the first column of every row.
  [[nodiscard]] Result<std::vector<std::string>> texts();

  [[nodiscard]] int64_t integer(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::string_view text(int column) const;  // until the next step

 private:
  static void finalize(sqlite3_stmt* statement);
  void restart();
  void put(int at, int64_t value);
  void put(int at, std::string_view value);
  void put(int at, const std::optional<double>& value);  // unset is NULL

  std::unique_ptr<sqlite3_stmt, void (*)(sqlite3_stmt*)> statement_;
};

class Database {
 public:
  // Opens or creates. Waits for other processes up to a minute.
  [[nodiscard]] static Result<Database> open(const std::filesystem::path& path);

  [[nodiscard]] Status run(const char* sql);  // one or more statements without parameters
  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  [[nodiscard]] int64_t last_row() const;

 private:
  explicit Database(sqlite3* handle) : handle_(handle, close) {}
  static void close(sqlite3* handle);
  std::unique_ptr<sqlite3, void (*)(sqlite3*)> handle_;
};

}  // namespace reckon::ledger::sqlite
