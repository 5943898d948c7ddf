#include "base/utf8.h"

#include <gtest/gtest.h>

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
  EXPECT_TRUE(valid_utf8(""));
  EXPECT_TRUE(valid_utf8("plain, ä, €, \U0001f600"));
  EXPECT_FALSE(valid_utf8("a\xe2\x82"));
}

}  // namespace
}  // namespace reckon
