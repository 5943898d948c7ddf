// A database of one test's own, on the server that scripts/with-postgres starts.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace reckon::ledger::test {

// "postgres://user@host:port/"; "" where there is no server.
inline std::string postgres_server() {
  const char* url = std::getenv("RECKON_TEST_POSTGRES");
  return url == nullptr ? "" : url;
}

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
