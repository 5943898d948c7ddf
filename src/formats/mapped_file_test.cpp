#include "formats/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
