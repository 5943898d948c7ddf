// A database of one test's own, on the server that scripts/with-postgres starts.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace reckon::ledger::test {

// "postgres://user@host:port/"; "" where there is no server.
inline std::string postgres_server() {
  const char* url = std::getenv("RECKON_TEST_POSTGRES");
  return url == nullptr ? "" : url;
}

// Ends a test where there is no server: skipped, or failed where RECKON_REQUIRE_POSTGRES is set.
#define RECKON_NEEDS_POSTGRES()                                                             \
  do {                                                                                      \
    if (!::reckon::ledger::test::postgres_server().empty()) break;                          \
    if (std::getenv("RECKON_REQUIRE_POSTGRES") != nullptr) {                                \
      FAIL() << "RECKON_TEST_POSTGRES names no server, and RECKON_REQUIRE_POSTGRES is set"; \
    }                                                                                       \
    GTEST_SKIP() << "RECKON_TEST_POSTGRES names no server";                                 \
  } while (false)

// Made by create(), gone with this object.
class PostgresDatabase {
 public:
  PostgresDatabase() = default;
  ~PostgresDatabase() {
    if (created_) (void)run("dropdb --force");
  }
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;

  [[nodiscard]] bool create() { return created_ = run("createdb"); }
  [[nodiscard]] std::string url() const { return postgres_server() + name_; }

 private:
  [[nodiscard]] bool run(const std::string& program) const {
    const std::string command =
        program + " --maintenance-db='" + postgres_server() + "postgres' " + name_;
    return std::system(command.c_str()) == 0;
  }

  const std::string name_ = "test" + std::to_string(::getpid());
  bool created_ = false;
};

}  // namespace reckon::ledger::test
