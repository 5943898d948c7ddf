#include "cli/report_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_testing.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ReportFolderTest : public testing::Test {
 protected:
  std::string path() const { return sandbox_.path("report"); }
  // A report of these entries.
  Result<size_t> write(const std::vector<std::string>& files, Occupied occupied) {
    TRY_ASSIGN(ReportFolder folder, ReportFolder::open(path(), occupied));
    for (const std::string& file : files) TRY(folder.write(file, file));
    return folder.finish();
  }
  Sandbox sandbox_;
};

TEST_F(ReportFolderTest, ReplacesAnEarlierReport) {
  ASSERT_TRUE(write({"entries/a.html", "entries/b.html", "index.html"}, Occupied::kRefuse).ok());
  sandbox_.write("report/entries/c.html.x1y2z3", "what a killed run left");
  sandbox_.write("report/CNAME", "a file of the user");
  const Result<size_t> removed = write({"entries/b.html", "index.html"}, Occupied::kRefuse);
  ASSERT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_EQ(*removed, 2u);
  EXPECT_FALSE(fs::exists(path() + "/entries/a.html"));
  EXPECT_EQ(file_text(path() + "/entries/b.html"), "entries/b.html");
  EXPECT_TRUE(fs::exists(path() + "/CNAME"));
  EXPECT_THAT(file_text(path() + "/.reckon-report"), testing::StartsWith("complete"));
}

TEST_F(ReportFolderTest, SaysWhereARunDidNotEnd) {
  Result<ReportFolder> folder = ReportFolder::open(path(), Occupied::kRefuse);
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(folder->write("entries/a.html", "a").ok());
  EXPECT_THAT(file_text(path() + "/.reckon-report"), testing::StartsWith("incomplete"));
  EXPECT_FALSE(fs::exists(path() + "/index.html"));
  EXPECT_TRUE(write({"index.html"}, Occupied::kRefuse).ok());  // and goes over it
}

TEST_F(ReportFolderTest, KeepsOutOfOtherFolders) {
  fs::create_directories(path() + "/entries");
  sandbox_.write("report/entries/mine.html", "mine");
  const auto refused = write({"index.html"}, Occupied::kRefuse);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(refused.error().message, HasSubstr("no report wrote"));
  ASSERT_TRUE(write({"index.html"}, Occupied::kAccept).ok());
  EXPECT_EQ(file_text(path() + "/entries/mine.html"), "mine");

  sandbox_.write("file", "x");
  const auto file = ReportFolder::open(sandbox_.path("file"), Occupied::kAccept);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace reckon::cli
