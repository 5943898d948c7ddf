#include "experiment/utf8.h"

#include <gtest/gtest.h>

namespace reckon::experiment {
namespace {

TEST(Utf8, WellFormed) {
  EXPECT_TRUE(valid_utf8(""));
  EXPECT_TRUE(valid_utf8("plain, ä, €, \U0001f600"));
  for (const char* bad : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "a\xe2\x82"}) {
    EXPECT_FALSE(valid_utf8(bad));
  }
}

TEST(Utf8, OneLine) {
  EXPECT_EQ(one_line("a\nb\tc\x7f\x01"), "a b c  ");
  EXPECT_EQ(one_line("x\xffy\xc3"), "x\xef\xbf\xbdy\xef\xbf\xbd");
  EXPECT_EQ(one_line("€"), "€");
}

TEST(Utf8, ShortenCutsBetweenCharacters) {
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("abcd", 3), "abc…");
  EXPECT_EQ(shorten("a€€", 5), "a€…");
}

}  // namespace
}  // namespace reckon::experiment
