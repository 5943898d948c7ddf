#include "ledger/postgres/postgres_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger/locate.h"

namespace reckon::ledger {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PostgresStore, HidesPasswords) {
  for (const char* plain :
       {"postgres://host/reckon", "postgresql://ann@host:5432/reckon?sslmode=require",
        "postgres:///reckon?host=/tmp", "postgres://host:5432/a@b", "postgres://"}) {
    EXPECT_EQ(hidden_password(plain), plain);
    EXPECT_EQ(without_password(plain), plain);
  }
  EXPECT_EQ(hidden_password("postgres://ann:secret@host:5432/reckon"),
            "postgres://ann:***@host:5432/reckon");
  EXPECT_EQ(hidden_password("postgres://ann:se@cret@host"), "postgres://ann:***@host");
  EXPECT_EQ(hidden_password("postgres://ann:se?cret@host/reckon?sslmode=require"),
            "postgres://ann:***@host/reckon?sslmode=require");
  EXPECT_EQ(hidden_password("postgres://host/reckon?password=secret&user=ann&sslpassword=x"),
            "postgres://host/reckon?password=***&user=ann&sslpassword=***");
}

TEST(PostgresStore, LeavesPasswordsOut) {
  EXPECT_EQ(without_password("postgres://ann:secret@host:5432/reckon"),
            "postgres://ann@host:5432/reckon");
  EXPECT_EQ(without_password("postgres://ann:se@cret@host?sslmode=require"),
            "postgres://ann@host?sslmode=require");
  EXPECT_EQ(without_password("postgres://host/reckon?password=secret&user=ann&sslpassword=x"),
            "postgres://host/reckon?user=ann");
  EXPECT_EQ(without_password("postgres://host/reckon?password=secret"), "postgres://host/reckon");
}

TEST(PostgresStore, KeepsWhatWaitsInAPlaceOfTheUrlWhateverThePassword) {
  const auto place = [](const char* url) {
    return open_postgres_store(url).value()->local_folder().value();
  };
  const std::filesystem::path folder = place("postgres://ann@host/reckon");
  EXPECT_EQ(place("postgresql://ann:secret@host/reckon"), folder);
  EXPECT_EQ(place("postgres://ann@host/reckon?password=secret"), folder);
  EXPECT_NE(place("postgres://ann@host/other"), folder);
  EXPECT_NE(place("postgres://bob@host/reckon"), folder);
  EXPECT_EQ(folder.parent_path(), std::filesystem::path(state_folder().value()) / "ledgers");
  EXPECT_EQ(folder.string().find("host"), std::string::npos);
}

TEST(PostgresStore, ErrorsAreOneLineWithoutThePassword) {
  const auto store = open_postgres_store("postgres://ann:secret@127.0.0.1:1/reckon").value();
  EXPECT_THAT(store->location(), Not(HasSubstr("secret")));
  const auto read = store->read();
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("postgres://ann:***@127.0.0.1:1/reckon: "));
  EXPECT_THAT(read.error().message, Not(HasSubstr("secret")));
  EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
}

TEST(PostgresStore, AUrlThatCannotBeReadKeepsItsPassword) {
  const auto message = [](const char* url) {
    const auto read = open_postgres_store(url).value()->read();
    EXPECT_FALSE(read.ok());
    return read.ok() ? "" : read.error().message;
  };
  for (const char* url : {"postgres://ann:sec%zzret@127.0.0.1/reckon",
                          "postgres://127.0.0.1/reckon?user=ann&password=sec%zzret"}) {
    EXPECT_THAT(message(url), Not(HasSubstr("zzret")));
    EXPECT_THAT(message(url), HasSubstr("percent-encoded"));
  }
  EXPECT_THAT(message("postgres://ann@127.0.0.1/rec%zzkon"), HasSubstr("%zzkon"));
}

}  // namespace
}  // namespace reckon::ledger
