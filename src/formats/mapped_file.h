// The bytes of a whole file, mapped read-only. They live as long as the object; moving it keeps
// every pointer into them valid. Reading is thread-safe. A file that another process truncates
// while it is mapped raises SIGBUS on access (a property of mmap); replace model files by renaming.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

class MappedFile {
 public:
  // Fails, naming the path, where it is not a readable regular file. An empty file maps to "".
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);
  // A copy of bytes in memory in the place of a file, for fuzzing and tests of parsers.
  [[nodiscard]] static MappedFile copy_of(std::string name, std::string_view bytes);

  [[nodiscard]] const std::string& path() const { return path_; }
  // Begins at a multiple of 64 bytes.
  [[nodiscard]] std::string_view bytes() const { return {memory_.get(), size_}; }

 private:
  using Memory = std::unique_ptr<const char, std::function<void(const char*)>>;
  MappedFile(std::string path, Memory memory, size_t size);

  std::string path_;
  Memory memory_;
  size_t size_ = 0;
};

}  // namespace reckon
