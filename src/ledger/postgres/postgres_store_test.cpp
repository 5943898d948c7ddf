#include "ledger/postgres/postgres_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon::ledger {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(PostgresStore, HidesPasswords) {
  for (const char* plain :
       {"postgres://host/reckon", "postgresql://ann@host:5432/reckon?sslmode=require",
        "postgres:///reckon?host=/tmp", "postgres://host:5432/a@b", "postgres://"}) {
    EXPECT_EQ(without_password(plain), plain);
  }
  EXPECT_EQ(without_password("postgres://ann:secret@host:5432/reckon"),
            "postgres://ann:***@host:5432/reckon");
  EXPECT_EQ(without_password("postgres://ann:se@cret@host"), "postgres://ann:***@host");
  EXPECT_EQ(without_password("postgres://host/reckon?password=secret&user=ann&sslpassword=x"),
            "postgres://host/reckon?password=***&user=ann&sslpassword=***");
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

}  // namespace
}  // namespace reckon::ledger
