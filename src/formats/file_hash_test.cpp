#include "formats/file_hash.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "base/hash.h"
#include "formats/new_file.h"
#include "formats/test_files.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

class FileHash : public ::testing::Test {
 protected:
  // With the time of an hour ago.
  void write(std::string_view bytes, std::chrono::minutes age = std::chrono::minutes(60)) {
    path_ = folder_.write("model", bytes);
    fs::last_write_time(path_, fs::file_time_type::clock::now() - age);
  }
  [[nodiscard]] std::string hash() const {
    const auto file = MappedFile::open(path_);
    EXPECT_TRUE(file.ok());
    return file_hash(*file, {cache(), 1, settled_ns_});
  }
  [[nodiscard]] std::string cache() const { return folder_.path() + "/cache"; }
  [[nodiscard]] std::vector<fs::path> records() const {
    std::vector<fs::path> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(cache() + "/hashes", ignored)) {
      found.push_back(entry.path());
    }
    return found;
  }
  // What is remembered says this now, whatever the file has: so that reading it shows.
  void forge(const std::string& hash) const {
    const std::string line = read_file(records().at(0));
    const std::string head = line.substr(0, line.size() - 32 - 1 - 16 - 1);
    const std::string forged = head + hash;
    std::ofstream(records().at(0)) << forged << " " << fmt_hash(forged) << "\n";
  }
  static std::string fmt_hash(const std::string& text) {
    std::string digits(16, '0');
    uint64_t value = hash64(text);
    for (size_t i = 16; i-- > 0; value /= 16) digits[i] = "0123456789abcdef"[value % 16];
    return digits;
  }

  TestFolder folder_;
  std::string path_;
  int64_t settled_ns_ = 0;
};

const std::string kForged(32, 'f');

TEST_F(FileHash, IsThatOfTheBytesAndRemembered) {
  write("one");
  EXPECT_EQ(hash(), hash_hex("one"));
  ASSERT_EQ(records().size(), 1U);
  forge(kForged);
  EXPECT_EQ(hash(), kForged);  // not read again
}

TEST_F(FileHash, AnotherSizeOrTimeIsReadAgain) {
  write("one");
  (void)hash();
  forge(kForged);
  write("four");
  EXPECT_EQ(hash(), hash_hex("four"));
  forge(kForged);
  write("five", std::chrono::minutes(30));
  EXPECT_EQ(hash(), hash_hex("five"));
  // The same size, and its time set back to what it was: the change itself has a time, too.
  const auto time = fs::last_write_time(path_);
  forge(kForged);
  std::ofstream(path_) << "nine";
  fs::last_write_time(path_, time);
  EXPECT_EQ(hash(), hash_hex("nine"));
}

TEST_F(FileHash, WhatWasJustWrittenIsNotRemembered) {
  settled_ns_ = FileHashOptions().settled_ns;
  for (const int minutes : {0, 60}) {  // a time that was set back is a change, too
    write("new", std::chrono::minutes(minutes));
    EXPECT_EQ(hash(), hash_hex("new"));
    EXPECT_TRUE(records().empty());
  }
}

// Writes through a mapping and sets the file's times back, as far as that goes: what they are until
// the system has written the page.
TEST_F(FileHash, AChangedSampleIsReadAgain) {
  const std::string pages(64 * 4096, 'x');
  write(pages);
  const auto time = fs::last_write_time(path_);
  const auto opened = MappedFile::open(path_);
  ASSERT_TRUE(opened.ok());
  (void)file_hash(*opened, {cache(), 1, 0});
  forge(kForged);
  EXPECT_EQ(file_hash(*opened, {cache(), 1, 0}), kForged);
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(70'000).put('y');
  fs::last_write_time(path_, time);
  std::string changed = pages;
  changed[70'000] = 'y';
  // The stamp is still that of opened.
  EXPECT_EQ(file_hash(*opened, {cache(), 1, 0}), hash_hex(changed));
}

TEST_F(FileHash, WaitsForNoPipe) {
  write("one");
  (void)hash();
  const fs::path record = records().at(0);
  fs::remove(record);
  ASSERT_EQ(mkfifo(record.c_str(), 0600), 0);
  EXPECT_EQ(hash(), hash_hex("one"));
  forge(kForged);  // a file has taken its place
  EXPECT_EQ(hash(), kForged);
}

TEST_F(FileHash, ADamagedRecordCountsForNothing) {
  write("one");
  (void)hash();
  const std::string whole = read_file(records().at(0));
  for (size_t i = 0; i < whole.size() - 1; ++i) {
    std::string damaged = whole;
    damaged[i] = damaged[i] == '0' ? '1' : '0';
    std::ofstream(records().at(0), std::ios::trunc) << damaged;
    ASSERT_EQ(hash(), hash_hex("one")) << i;
    std::ofstream(records().at(0), std::ios::trunc) << whole.substr(0, i);
    ASSERT_EQ(hash(), hash_hex("one")) << i;
  }
}

TEST_F(FileHash, NoFolderAndSmallFilesAreHashedEachTime) {
  write("one");
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file_hash(*file, {"", 1, 0}), hash_hex("one"));
  EXPECT_EQ(file_hash(*file, {cache(), 4, 0}), hash_hex("one"));
  EXPECT_EQ(file_hash(*file, {path_ + "/no/folder", 1, 0}), hash_hex("one"));
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(file_hash(MappedFile::copy_of("memory", "bytes"), {cache(), 1, 0}), hash_hex("bytes"));
}

using Paths = std::vector<fs::path>;

Paths files_in(const std::string& folder) {
  Paths found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
  return found;
}

TEST(NewFile, ADraftGoesUnlessItGetsItsName) {
  TestFolder folder;
  const std::string path = folder.write("kept", "old");
  {
    NewFile draft = NewFile::named_draft(path);
    EXPECT_TRUE(draft.path().starts_with(folder.path() + "/.kept.reckon-draft-")) << draft.path();
    ASSERT_TRUE(draft.write("half").ok());
    ASSERT_TRUE(draft.write_at(1, "A").ok());
    EXPECT_EQ(read_file(draft.path()), "hAlf");
  }
  EXPECT_EQ(read_file(path), "old");
  {
    NewFile draft = NewFile::named_draft(path);
    ASSERT_TRUE(draft.write("named").ok());
    ASSERT_TRUE(draft.rename_to(path).ok());
  }
  EXPECT_EQ(read_file(path), "named");
  ASSERT_TRUE(replace_file(path, "new").ok());
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(files_in(folder.path()), Paths{path});
  EXPECT_FALSE(replace_file(folder.path() + "/no/such", "x").ok());
  fs::create_directory(folder.path() + "/taken");
  EXPECT_FALSE(replace_file(folder.path() + "/taken", "x").ok());
  EXPECT_EQ(files_in(folder.path()).size(), 2U);
}

TEST(NewFile, ADraftHasNoNameWhereTheFileSystemCanDoWithout) {
  TestFolder folder;
  const NewFile draft = NewFile::beside(folder.path() + "/file");
  if (draft.path() != folder.path() + "/file") GTEST_SKIP() << "no files without a name here";
  EXPECT_EQ(files_in(folder.path()), Paths{});
}

TEST(NewFile, OnlyDraftsThatNobodyHasAreRemoved) {
  TestFolder folder;
  const std::string path = folder.path() + "/file";
  const std::string digits = "0123456789abcdef";
  folder.write(".file.reckon-draft-" + digits, "MAGIC and more");
  folder.write(".file.reckon-draft-1123456789abcdef", "");
  Paths kept{folder.write("file.backup", "MAGIC"),
             folder.write("file.sha256", "MAGIC"),
             folder.write(".file.reckon-draft-backup", "MAGIC"),
             folder.write(".file.reckon-draft-012345678", "MAGIC"),
             folder.write(".file.reckon-draft-2123456789abcdef", "a user's"),
             folder.write(".other.reckon-draft-" + digits, "MAGIC")};
  NewFile held = NewFile::named_draft(path);
  ASSERT_TRUE(held.write("MAGIC").ok());
  kept.emplace_back(held.path());
  const std::string_view magic = "MAGIC";
  remove_drafts(path, {&magic, 1});
  Paths left = files_in(folder.path());
  std::ranges::sort(left);
  std::ranges::sort(kept);
  EXPECT_EQ(left, kept);
}

}  // namespace
}  // namespace reckon
