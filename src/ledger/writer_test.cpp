#include "ledger/writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace reckon::ledger {
namespace {

TEST(Writer, Sanitizes) {
  EXPECT_EQ(sanitize_writer("Ann@Host.example.org"), "ann-host-example-org");
  EXPECT_EQ(sanitize_writer("--a__b--"), "a-b");
  EXPECT_EQ(sanitize_writer("../../etc/passwd"), "etc-passwd");
  EXPECT_EQ(sanitize_writer("J\u00f6rg"), "j-rg");
  EXPECT_EQ(sanitize_writer("@@@"), "");
  EXPECT_EQ(sanitize_writer(""), "");
  EXPECT_EQ(sanitize_writer(std::string(200, 'x')).size(), 64U);
}

TEST(Writer, NamesAreFixedPoints) {
  EXPECT_TRUE(is_writer_name("ann-host"));
  for (const char* bad : {"", "-a", "a-", "a--b", "A", "a b", "a/b", "a.b"}) {
    EXPECT_FALSE(is_writer_name(bad)) << bad;
  }
  const std::string odd = sanitize_writer(std::string(63, 'x') + "-y");
  EXPECT_TRUE(is_writer_name(odd)) << odd;
}

TEST(Writer, DefaultIsNeverEmpty) {
  setenv("RECKON_WRITER", "Lab Box 7", 1);
  EXPECT_EQ(default_writer(), "lab-box-7");
  setenv("RECKON_WRITER", "@@", 1);
  EXPECT_TRUE(is_writer_name(default_writer())) << default_writer();
  setenv("RECKON_WRITER", "", 1);
  EXPECT_TRUE(is_writer_name(default_writer()));
  unsetenv("RECKON_WRITER");
  EXPECT_TRUE(is_writer_name(default_writer()));
}

}  // namespace
}  // namespace reckon::ledger
