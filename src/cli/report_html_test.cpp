#include "cli/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report_parsing.h"

namespace reckon::cli {
namespace {

TEST(ReportHtml, EscapesTextAndAttributes) {
  EXPECT_EQ(html_text("a<b> & \"c\" 'd'").markup(), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(element("a", {{"href", "x\"><script>"}, {"class", ""}}, "y").markup(),
            "<a href=\"x&quot;&gt;&lt;script&gt;\">y</a>");
  EXPECT_EQ(html_text("a\x1b[31m\n\xff\xc3\xa9").markup(), "a\\x1b[31m \\xff\xc3\xa9");
  EXPECT_EQ(html_lines("a\n<b>\n").markup(), "a\n&lt;b&gt;\n");
}

TEST(ReportHtml, MakesAWholePage) {
  Document document;
  document.title = "</title><script>";
  document.root = "../";
  document.main = element("h1", "One");
  document.footer = "the end";
  HtmlNode page;
  ASSERT_EQ(HtmlReader::read(document_text(document), page), "");
  EXPECT_EQ(page.all("title").at(0)->text, "</title><script>");
  EXPECT_EQ(page.all("main").size(), 1u);
  EXPECT_EQ(page.all("a").at(1)->attributes.at("href"), "../index.html");
  EXPECT_TRUE(page.all("script").empty());
  // Nothing is fetched: no address anywhere, and a policy that forbids it.
  EXPECT_EQ(document_text(document).find("http"), document_text(document).find("http-equiv"));
  EXPECT_NE(document_text(document).find("default-src &#39;none&#39;"), std::string::npos);
}

}  // namespace
}  // namespace reckon::cli
