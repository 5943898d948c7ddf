#include "base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace reckon {
namespace {

TEST(RegularFile, SaysWhatAPathIsInstead) {
  std::string pattern = testing::TempDir() + "reckon_base_XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path folder = pattern;
  const std::string file = folder / "file";
  std::ofstream(file) << "text";
  std::filesystem::create_symlink(file, folder / "link");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(why_not_a_file(file), "");
  EXPECT_EQ(why_not_a_file(folder / "link"), "");
  EXPECT_EQ(why_not_a_file(folder / "none"), "no such file");
  EXPECT_EQ(why_not_a_file(folder), "is a folder, not a file");
  EXPECT_EQ(why_not_a_file(folder / "pipe"), "is a pipe, not a file");
  EXPECT_EQ(why_not_a_file("/dev/zero"), "is a device, not a file");
  EXPECT_EQ(why_not_a_file(folder / std::string(300, 'x')), "File name too long");
  EXPECT_EQ(why_not_a_file(""), "no such file");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace reckon
