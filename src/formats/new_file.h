// Writing files so that a reader sees all of them or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

// beside() names its file "PATH." and so many letters.
inline constexpr size_t kDraftLetters = 6;

// A file being written, closed at the end. Errors name the path and the system's reason.
class NewFile {
 public:
  // Creates the file; fails, at the first write, where it is there.
  explicit NewFile(const std::string& path);
  // Creates a file of a new name that begins with `path`; it is removed unless it gets its own.
  [[nodiscard]] static NewFile beside(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return fd_; }  // -1 where it could not be created
  [[nodiscard]] Status write(std::string_view bytes);
  [[nodiscard]] Status write_at(uint64_t offset, std::string_view bytes);
  [[nodiscard]] Status sync();  // to stable storage
  // In the place of whatever is there.
  [[nodiscard]] Status rename_to(const std::string& path);

 private:
  NewFile(std::string path, int fd, bool draft);
  [[nodiscard]] Error error() const;

  std::string path_;
  int fd_;
  int create_error_;  // where fd_ < 0
  bool draft_;        // to be removed at the end
};

// Puts `bytes` in the place of the file at `path`, whether or not there is one, by renaming. A
// reader sees the old file or the new one. Nothing is left behind where it fails.
[[nodiscard]] Status replace_file(const std::string& path, std::string_view bytes);

}  // namespace reckon
