#include "ledger/jsonl/jsonl_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ledger/jsonl/files.h"
#include "ledger/test_events.h"

namespace reckon::ledger {
namespace {

namespace fs = std::filesystem;
using test::at;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JsonlStoreTest : public testing::Test {
 protected:
  const test::TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "ann-2026-09.jsonl";
  const std::unique_ptr<Store> store_ = open_jsonl_store(folder_.path().string()).value();
  const Event idea_ = test::idea(test::expert_tile_scope());
  const Event round_ = test::measured(idea_.entry, "r1", -0.037);
  const Event verdict_ = test::verdict(idea_.entry, test::lost());

  void append(const Event& event) { ASSERT_TRUE(store_->append({&event, 1}).ok()); }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
};

TEST_F(JsonlStoreTest, OneFileAWriterAndMonth) {
  append(idea_);
  append(test::idea(test::expert_tile_scope(), "bob"));
  append(test::idea(test::expert_tile_scope(), "ann", "2026-10-01T00:00:00Z"));
  EXPECT_THAT(jsonl::list_files(folder_.path()).value(),
              ElementsAre(".gitattributes", ".reckon-ledger", "ann-2026-09.jsonl",
                          "ann-2026-10.jsonl", "bob-2026-09.jsonl"));
  EXPECT_EQ(content(file_), event_line(idea_).value() + "\n");
}

TEST_F(JsonlStoreTest, ATornLastLineIsSetAsideWithAWarning) {
  append(idea_);
  append(round_);
  const std::string whole = content(file_);
  const std::string line = event_line(verdict_).value();
  for (const size_t size : {size_t{1}, line.size() / 2, line.size() - 1}) {
    write(file_, whole + line.substr(0, size));
    const ReadReport torn = store_->read().value();
    EXPECT_EQ(torn.events.size(), 2U);
    EXPECT_THAT(torn.warnings, ElementsAre(HasSubstr("ann-2026-09.jsonl:3: a line that a crash")));
    EXPECT_TRUE(store_->verify().value().ok());
    EXPECT_EQ(content(file_), whole + line.substr(0, size)) << "reading changes nothing";

    const AppendReport report = store_->append({&verdict_, 1}).value();
    EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("was set aside in ann-2026-09.jsonl.torn")));
    EXPECT_EQ(content(file_), whole + line + "\n");
    EXPECT_THAT(store_->read().value().warnings, IsEmpty());
  }
  EXPECT_EQ(content(file_.string() + ".torn-1"), line.substr(0, 1));
  EXPECT_EQ(content(file_.string() + ".torn-3"), line.substr(0, line.size() - 1));
  EXPECT_EQ(store_->verify().value().notes.size(), 3U);
}

TEST_F(JsonlStoreTest, ALongTornLineIsSetAsideWhole) {
  append(idea_);
  const std::string whole = content(file_);
  const std::string tail(200000, 'x');
  write(file_, whole + tail);
  append(round_);
  EXPECT_EQ(content(file_.string() + ".torn-1"), tail);
  EXPECT_EQ(store_->read().value().events.size(), 2U);
}

TEST_F(JsonlStoreTest, ALinkThatLeadsToNoFileIsAnError) {
  append(idea_);
  const fs::path other = folder_.path() / "bob-2026-09.jsonl";
  for (const fs::path& target : {fs::path("nowhere"), other.filename()}) {
    fs::create_symlink(target, other);
    const auto read = store_->read();
    ASSERT_FALSE(read.ok()) << target;
    EXPECT_THAT(read.error().message, HasSubstr("bob-2026-09.jsonl: named as a ledger's file"));
    EXPECT_FALSE(store_->verify().ok()) << target;
    fs::remove(other);
  }
  fs::rename(file_, folder_.path() / "kept");
  fs::create_symlink("kept", file_);
  EXPECT_EQ(store_->read().value().events, std::vector{idea_});
}

TEST_F(JsonlStoreTest, AFileOfOnlyATornLine) {
  write(file_, R"({"body":)");
  EXPECT_EQ(store_->read().value().warnings.size(), 1U);
  append(idea_);
  EXPECT_EQ(content(file_), event_line(idea_).value() + "\n");
}

TEST_F(JsonlStoreTest, AWholeLineWithoutItsNewlineIsKept) {
  write(file_, event_line(idea_).value());
  EXPECT_EQ(store_->read().value().events, std::vector{idea_});
  const AppendReport report = store_->append({&round_, 1}).value();
  EXPECT_THAT(report.warnings, IsEmpty());
  const std::vector<Event> expected = {idea_, round_};
  EXPECT_EQ(store_->read().value().events, expected);
}

TEST_F(JsonlStoreTest, DamageInTheMiddleIsNamedByReadAndFailsVerify) {
  append(idea_);
  append(round_);
  append(verdict_);
  std::string text = content(file_);
  const size_t at = text.find("-0.037");
  ASSERT_NE(at, std::string::npos);
  text[at + 5] = '8';
  write(file_, text);
  const ReadReport report = store_->read().value();
  const std::vector<Event> expected = {idea_, verdict_};
  EXPECT_EQ(report.events, expected);
  const std::string where = file_.string() + ":2: checksum mismatch";
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr(where)));
  const VerifyReport verified = store_->verify().value();
  EXPECT_FALSE(verified.ok());
  EXPECT_THAT(verified.errors, ElementsAre(HasSubstr(where)));
  append(test::remark(idea_.entry, "appending goes on"));
  EXPECT_EQ(store_->read().value().events.size(), 3U);
  EXPECT_FALSE(store_->verify().value().ok());
}

TEST_F(JsonlStoreTest, MergeConflictMarksAndWindowsLineEnds) {
  write(file_, "<<<<<<< ours\r\n" + event_line(idea_).value() + "\r\n\r\n>>>>>>> theirs\r\n");
  const ReadReport report = store_->read().value();
  EXPECT_EQ(report.events, std::vector{idea_});
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr(":1: not a line of JSON"), HasSubstr(":4:")));
}

TEST_F(JsonlStoreTest, OtherFilesAreNotTheLedgers) {
  append(idea_);
  write(folder_.path() / "journal.jsonl", "not an event\n");
  write(folder_.path() / "README.md", "hello\n");
  fs::create_directory(folder_.path() / "bob-2026-09.jsonl");
  EXPECT_THAT(store_->read().value().warnings, IsEmpty());
  EXPECT_EQ(store_->verify().value().events, 1U);
}

TEST_F(JsonlStoreTest, TwoClonesMergeByCopyingFiles) {
  append(idea_);
  append(round_);
  const test::TemporaryFolder clone;
  fs::copy(file_, clone.path() / "ann-2026-09.jsonl");
  const auto other = open_jsonl_store(clone.path().string()).value();
  Event bobs = verdict_;
  bobs.writer = "bob";
  ASSERT_TRUE(other->append({&bobs, 1}).ok());
  fs::copy(clone.path() / "bob-2026-09.jsonl", folder_.path() / "bob-2026-09.jsonl");
  const std::vector<Event> expected = {idea_, round_, bobs};
  EXPECT_EQ(store_->read().value().events, expected);
}

TEST_F(JsonlStoreTest, AReadOnlyFolderReads) {
  append(idea_);
  for (const bool with_marker : {true, false}) {
    if (!with_marker) fs::remove(folder_.path() / jsonl::kMarkerName);
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      fs::permissions(entry.path(), fs::perms::owner_read);
    }
    fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(store_->read().value().events, std::vector{idea_});
    EXPECT_TRUE(store_->verify().value().ok());
    if (geteuid() != 0) {
      EXPECT_FALSE(store_->append({&round_, 1}).ok());
    }
    fs::permissions(folder_.path(), fs::perms::owner_all);
  }
}

TEST_F(JsonlStoreTest, ErrorsNameThePath) {
  write(folder_.path() / "plain", "");
  const std::string plain = (folder_.path() / "plain").string();
  EXPECT_EQ(open_jsonl_store(plain).error().kind, ErrorKind::kUsage);
  const auto inside = open_jsonl_store(plain + "/ledger").value();
  const auto result = inside->append({&idea_, 1});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr(plain));
}

TEST_F(JsonlStoreTest, AFullDiskLeavesNoHalfLine) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  fs::create_symlink("/dev/full", file_);
  const auto result = store_->append({&idea_, 1});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("ann-2026-09.jsonl"));
}

TEST(LedgerFileNames, AreRecognised) {
  EXPECT_EQ(jsonl::ledger_file_name("ann", at(0)), "ann-2026-09.jsonl");
  EXPECT_TRUE(jsonl::is_ledger_file_name("ann-host-2026-09.jsonl"));
  for (const char* name :
       {"2026-09.jsonl", "-2026-09.jsonl", "ann-2026-9.jsonl", "ann-2026-09.json",
        "Ann-2026-09.jsonl", "ann-2026-09.jsonl.torn-1", "ann.jsonl", ""}) {
    EXPECT_FALSE(jsonl::is_ledger_file_name(name)) << name;
  }
  EXPECT_TRUE(jsonl::is_torn_file_name("ann-2026-09.jsonl.torn-1"));
  EXPECT_FALSE(jsonl::is_torn_file_name("ann-2026-09.jsonl"));
}

}  // namespace
}  // namespace reckon::ledger
