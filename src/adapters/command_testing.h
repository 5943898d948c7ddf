// What the tests of the command Runner share: folders with files, and processes that are gone.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace reckon::adapters {

class TestFolder {
 public:
  TestFolder() {
    std::string name = testing::TempDir() + "reckon-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }
  // Creates or replaces a file and returns its path.
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
    return file.string();
  }
  [[nodiscard]] std::string script(const std::string& name, const std::string& text) const {
    const std::string file = write(name, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Waits until a file has a line, and returns the number in it.
  [[nodiscard]] pid_t wait_for_pid(const std::string& name) const {
    for (int i = 0; i < 6000; ++i) {
      const std::string text = read(name);
      if (text.ends_with('\n')) return std::stoi(text);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return 0;
  }

 private:
  std::filesystem::path path_;
};

// Whether it ends within a minute; one that waits for its parent to notice counts as ended.
inline bool is_gone(pid_t pid) {
  for (int i = 0; i < 6000; ++i) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.compare(name_end, 3, ") Z") == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace reckon::adapters
