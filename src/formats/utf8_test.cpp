#include "formats/utf8.h"

#include <gtest/gtest.h>

#include "formats/utf8_stream.h"

namespace reckon {
namespace {

TEST(Utf8, EveryCodePointSurvivesTheRoundTrip) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    append_utf8(c, text);
    const Utf8Char decoded = decode_utf8(text);
    ASSERT_EQ(decoded.status, Utf8Status::kValid) << static_cast<uint32_t>(c);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, text.size());
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Char part = decode_utf8(std::string_view(text).substr(0, cut));
      ASSERT_EQ(part.status, Utf8Status::kIncomplete);
      ASSERT_EQ(part.length, cut);
    }
  }
}

TEST(Utf8, RejectsWhatIsNotUtf8) {
  struct Case {
    std::string_view bytes;
    size_t length;  // of the maximal invalid part
  };
  for (const Case& c : {Case{"\x80", 1}, Case{"\xc0\x80", 1}, Case{"\xc1\xbf", 1},
                        Case{"\xe0\x9f\xbf", 1}, Case{"\xed\xa0\x80", 1}, Case{"\xf0\x8f\xbf", 1},
                        Case{"\xf4\x90\x80", 1}, Case{"\xf5\x80", 1}, Case{"\xff", 1},
                        Case{"\xe2\x82x", 2}, Case{"\xf0\x9f\x98x", 3}, Case{"\xc3x", 1}}) {
    const Utf8Char decoded = decode_utf8(c.bytes);
    EXPECT_EQ(decoded.status, Utf8Status::kInvalid);
    EXPECT_EQ(decoded.length, c.length);
  }
  EXPECT_EQ(valid_utf8_prefix("h\xc3\xa9\xff"), 3U);
  EXPECT_EQ(valid_utf8_prefix("ab\xe2\x82"), 2U);
  EXPECT_EQ(valid_utf8_prefix(""), 0U);
}

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
