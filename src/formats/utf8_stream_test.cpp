#include "formats/utf8_stream.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace reckon {
namespace {

TEST(Utf8Stream, HoldsBackPartsOfCharacters) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
  for (size_t step = 1; step <= text.size(); ++step) {
    Utf8Stream stream;
    std::string got;
    for (size_t at = 0; at < text.size(); at += step) {
      const std::string part = stream.push(std::string_view(text).substr(at, step));
      EXPECT_EQ(valid_utf8_prefix(part), part.size());
      got += part;
    }
    EXPECT_EQ(stream.flush(), "");
    EXPECT_EQ(got, text);
  }
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xf0\x9f"), "");
  EXPECT_EQ(stream.push("\x98\x80!"), "\xf0\x9f\x98\x80!");
}

TEST(Utf8Stream, ReplacesEachMaximalInvalidPart) {
  const std::string replaced(kReplacementCharacter);
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xff\xfe"), "a" + replaced + replaced);
  EXPECT_EQ(stream.push("\xf0\x9f\x98"), "");
  EXPECT_EQ(stream.push("b"), replaced + "b");
  EXPECT_EQ(stream.push("\xe2\x82"), "");
  EXPECT_EQ(stream.flush(), replaced);
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("\xed\xa0\x80"), replaced + replaced + replaced);
}

}  // namespace
}  // namespace reckon
