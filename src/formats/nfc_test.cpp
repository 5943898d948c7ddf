#include "formats/nfc.h"

#include <gtest/gtest.h>

#include <string>

namespace reckon {
namespace {

struct Case {
  const char* from;
  const char* to;
};

// Expected values from Hugging Face tokenizers' NFC.
TEST(Nfc, ComposesAndReorders) {
  for (const Case& c : {
           Case{"plain ASCII", "plain ASCII"},
           Case{"e\u0301", "\u00e9"},
           Case{"\u00e9", "\u00e9"},
           Case{"a\u0327\u0301", "\u00e1\u0327"},  // blocked by nothing: 0327 has class 202
           Case{"a\u0301\u0327", "\u00e1\u0327"},  // reordered first
           Case{"e\u0302\u0301", "\u1ebf"},        // two compositions
           Case{"\u1100\u1161\u11a8", "\uac01"},   // Hangul
           Case{"\uac00\u11a8", "\uac01"},         //
           Case{"\uac00\u11a7", "\uac00\u11a7"},   // no tail
           Case{"\u212b", "\u00c5"},               // singleton
           Case{"\u0344", "\u0308\u0301"},         // excluded from composition
           Case{"\u0958", "\u0915\u093c"},         // likewise
           Case{"\u0301e", "\u0301e"},             // starts with a mark
           Case{"\u1e0b\u0323", "\u1e0d\u0307"},   // UAX #15, figure 5
           Case{"\u0b47\u0300\u0b3e", "\u0b47\u0300\u0b3e"},  // a starter behind a mark
           Case{"\ufa10", "\u585a"},                          // compatibility ideograph
           Case{"", ""},
       }) {
    EXPECT_EQ(nfc(c.from), c.to) << c.from;
    EXPECT_EQ(nfc(nfc(c.from)), nfc(c.from));
  }
}

TEST(Nfc, LeavesCharactersSinceUnicode10Alone) {
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");
  EXPECT_EQ(nfc("a\u0301\U0001e2ef"), "\u00e1\U0001e2ef");
}

TEST(Nfc, TheQuickCheckKnowsLatin) {
  EXPECT_TRUE(is_surely_nfc("na\u00efve \u0153uvre"));
  EXPECT_FALSE(is_surely_nfc("e\u0301"));
}

}  // namespace
}  // namespace reckon
