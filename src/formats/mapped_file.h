// A whole file mapped read-only. The mapping lives as long as the object; moving it keeps every
// pointer into it valid. Reading is thread-safe. A file that another process truncates while it is
// mapped raises SIGBUS on access (a property of mmap); replace model files by renaming.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

class MappedFile {
 public:
  // Fails, naming the path, where it is not a readable regular file. An empty file maps to "".
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string_view bytes() const { return {data_, size_}; }
  [[nodiscard]] const char* data() const { return data_; }  // page-aligned; null where empty
  [[nodiscard]] size_t size() const { return size_; }

 private:
  MappedFile(std::string path, const char* data, size_t size);

  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace reckon
