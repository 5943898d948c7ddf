// The bytes of a whole file, mapped read-only. They live as long as the object; moving it keeps
// every pointer into them valid. Reading is thread-safe. A file that another process truncates
// while it is mapped raises SIGBUS on access (a property of mmap); replace model files by renaming.
//
// So that a handler of that signal can say which file it was, mappings stand in a table: the only
// mutable state here that is no object's. A signal handler can be given nothing else, and may
// neither allocate nor wait, so the table is of a fixed size and of atomics. A mapping for which
// there is no room is not in it, and nothing else depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

// What changes when somebody writes to a file; all 0 for bytes that are no file's.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // since 1970: of the content
  int64_t changed_ns = 0;   // of the content, the name or the rights; no program can set it

  bool operator==(const FileStamp&) const = default;
};

// What became of a file since it was opened, the worst first.
enum class FileChange : uint8_t {
  kWritten,   // its size or the time of its content
  kTouched,   // the time of a change alone: its rights, or content with the time set back
  kReplaced,  // the path stands for another file or for none; the bytes are as they were
  kNone,
};

// The path of the file that is mapped where `address` is, fit for one line; null where there is
// none. Async-signal-safe, where that file stays mapped.
[[nodiscard]] const char* mapped_file_at(const void* address) noexcept;

class MappedFile {
 public:
  // Fails, naming the path, where it is not a readable regular file. An empty file maps to "".
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);
  // A copy of bytes in memory in the place of a file, for fuzzing and tests of parsers.
  [[nodiscard]] static MappedFile copy_of(std::string name, std::string_view bytes);

  [[nodiscard]] const std::string& path() const { return path_; }
  // Begins at a multiple of 64 bytes.
  [[nodiscard]] std::string_view bytes() const { return {memory_.get(), size_}; }
  // Asks for a part before it is read, so that a disk is kept busy. Advice only; thread-safe.
  void read_ahead(size_t offset, size_t bytes) const;
  // Of the file when it was opened.
  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }
  // Since then. kNone for bytes that are no file's. A write through a mapping of another process
  // may show only later, when the system gives it a time.
  [[nodiscard]] FileChange change() const;

 private:
  using Memory = std::unique_ptr<const char, std::function<void(const char*)>>;
  MappedFile(std::string path, Memory memory, size_t size);

  std::string path_;
  Memory memory_;
  size_t size_ = 0;
  FileStamp stamp_;
  int fd_ = -1;  // open as long as the mapping
};

}  // namespace reckon
