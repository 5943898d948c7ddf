#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/page.h"

namespace reckon::cli {
namespace {

TEST(Table, PadsColumnsToTheirWidestCell) {
  Table table({{"kernel"}, {"tok/s", Align::kRight}, {"note"}});
  table.add({"exact_avx2", "12.5", "±2"});
  table.add({"µ", "9", ""});
  EXPECT_EQ(table.text(),
            "kernel      tok/s  note\n"
            "----------  -----  ----\n"
            "exact_avx2   12.5  ±2\n"
            "µ               9\n");
}

TEST(Table, QuotesCsvCellsThatNeedIt) {
  Table table({{"a"}, {"b"}});
  table.add({"plain", "with, comma"});
  table.add({"with \"quotes\"", "two\nlines"});
  EXPECT_EQ(table.csv(),
            "a,b\n"
            "plain,\"with, comma\"\n"
            "\"with \"\"quotes\"\"\",\"two\nlines\"\n");
}

TEST(Page, WrapsAtItsWidth) {
  const std::string word(40, 'x');
  EXPECT_EQ(wrapped(word + " " + word + " " + word, 4), word + " " + word + "\n    " + word);
  EXPECT_EQ(wrapped("  kept  spaces", 2), "  kept  spaces");
  const std::string long_word(150, 'y');
  EXPECT_EQ(wrapped("a " + long_word + " b", 2), "a\n  " + long_word + "\n  b");
}

TEST(Page, AlignsLabels) {
  Page page;
  page.line("verdict", "WON");
  page.field("lever", "");
  page.lines("evidence", {"one", "two"});
  EXPECT_EQ(page.text(),
            "verdict       WON\n"
            "evidence      one\n"
            "              two\n");
}

TEST(Page, CountsCharactersNotBytes) {
  EXPECT_EQ(display_width("±µ…"), 3u);
  EXPECT_EQ(display_width("\033[1;31mred\033[0m"), 3u);
}

}  // namespace
}  // namespace reckon::cli
