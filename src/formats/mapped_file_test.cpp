#include "formats/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "formats/test_files.h"

namespace reckon {
namespace {

using ::testing::HasSubstr;

TEST(MappedFile, MapsAWholeFileAndSurvivesMoves) {
  const TestFolder folder;
  const std::string path = folder.write("file", std::string("a\0b", 3));
  auto opened = MappedFile::open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const std::string_view view = opened->bytes();
  EXPECT_EQ(view, std::string_view("a\0b", 3));
  MappedFile moved = std::move(opened).value();
  auto other = MappedFile::open(folder.write("other", "other"));
  ASSERT_TRUE(other.ok());
  MappedFile assigned = std::move(other).value();
  assigned = std::move(moved);
  EXPECT_EQ(assigned.bytes().data(), view.data());
  EXPECT_EQ(assigned.bytes(), view);
  EXPECT_EQ(assigned.path(), path);
}

TEST(MappedFile, AnEmptyFileIsEmpty) {
  const TestFolder folder;
  const auto file = MappedFile::open(folder.write("empty", ""));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->bytes(), "");
}

TEST(MappedFile, NamesWhatCannotBeMapped) {
  const TestFolder folder;
  EXPECT_THAT(MappedFile::open(folder.path() + "/none").error().message,
              HasSubstr("/none: cannot open: No such file or directory"));
  EXPECT_THAT(MappedFile::open(folder.path()).error().message, HasSubstr("a regular file"));
  EXPECT_THAT(MappedFile::open("/dev/null").error().message, HasSubstr("a regular file"));
}

TEST(MappedFile, SaysHowItChanged) {
  const TestFolder folder;
  const std::string path = folder.write("file", "content");
  const auto open = [&] { return MappedFile::open(path).value(); };
  const auto time = std::filesystem::last_write_time(path);
  EXPECT_EQ(open().change(), FileChange::kNone);
  EXPECT_EQ(MappedFile::copy_of("memory", "bytes").change(), FileChange::kNone);
  const MappedFile longer = open();
  folder.write("file", "more content");
  EXPECT_EQ(longer.change(), FileChange::kWritten);
  const MappedFile other_time = open();
  std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
  EXPECT_EQ(other_time.change(), FileChange::kWritten);
  const MappedFile touched = open();
  usleep(20'000);  // a tick of the file system's clock
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  EXPECT_EQ(touched.change(), FileChange::kTouched);
  const MappedFile replaced = open();
  std::filesystem::rename(folder.write("new", "content"), path);
  EXPECT_EQ(replaced.change(), FileChange::kReplaced);
  EXPECT_EQ(replaced.bytes(), "more content");
  const MappedFile removed = open();
  std::filesystem::remove(path);
  EXPECT_EQ(removed.change(), FileChange::kReplaced);
}

TEST(MappedFile, IsFoundByItsAddresses) {
  const TestFolder folder;
  const char* begin = nullptr;
  {
    const auto file = MappedFile::open(folder.write("one\nfile", std::string(5000, 'x')));
    ASSERT_TRUE(file.ok());
    begin = file->bytes().data();
    for (const size_t at : {0, 4999, 8191}) {  // to the end of the page
      EXPECT_THAT(mapped_file_at(begin + at), testing::EndsWith("one file")) << at;
    }
    EXPECT_EQ(mapped_file_at(begin + 8192), nullptr);
    EXPECT_EQ(mapped_file_at(begin - 1), nullptr);
  }
  EXPECT_EQ(mapped_file_at(begin), nullptr);
  EXPECT_EQ(mapped_file_at(nullptr), nullptr);
}

TEST(MappedFile, MoreThanTheTableHoldsAreMappedAllTheSame) {
  const TestFolder folder;
  const std::string path = folder.write("file", "x");
  std::vector<MappedFile> files;
  for (int i = 0; i < 600; ++i) files.push_back(MappedFile::open(path).value());
  for (const MappedFile& file : files) EXPECT_EQ(file.bytes(), "x");
  EXPECT_NE(mapped_file_at(files[0].bytes().data()), nullptr);
}

TEST(MappedFile, CopiesAreAligned) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}}) {
    const std::string bytes(size, 'x');
    const MappedFile file = MappedFile::copy_of("memory", bytes);
    EXPECT_EQ(file.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file.bytes().data()) % 64, 0U);
  }
}

}  // namespace
}  // namespace reckon
