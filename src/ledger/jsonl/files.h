// The files of a JSON-lines ledger: their names, the lock, durable appends and reading back.
//
// A folder holds `<writer>-<yyyy>-<mm>.jsonl` files, the marker `.reckon-ledger`, which is also
// what appends and reads lock (flock), and `<file>.torn-<n>` files: line ends that a crash cut
// short, set aside by the next append to that file. Other files are not the ledger's.
// All functions are thread-safe; errors name the path and the system's reason.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reckon::ledger::jsonl {

inline constexpr std::string_view kMarkerName = ".reckon-ledger";

[[nodiscard]] bool is_ledger_file_name(std::string_view name);
[[nodiscard]] bool is_torn_file_name(std::string_view name);
// `time` as Event::time.
[[nodiscard]] std::string ledger_file_name(std::string_view writer, std::string_view time);

// An open file; closed on destruction, which also releases its lock.
class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  ~File();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

enum class LockKind {
  kShared,
  kExclusive,
  kExclusiveNow
};  // kExclusiveNow fails rather than waits
// Opens the file, created where it is missing, and locks it.
[[nodiscard]] Result<File> lock_file(const std::filesystem::path& path, LockKind kind);
// Changes the lock of a file that is open; not atomic: another process may be in between.
[[nodiscard]] Status relock(const File& file, LockKind kind);

// Creates the folder and its marker where they are missing, and waits for the exclusive lock.
[[nodiscard]] Result<File> lock_for_append(const std::filesystem::path& folder);
// Waits for the shared lock; holds nothing where there is no marker or no locking to be had
// (a read-only copy), since there is nobody to wait for then.
[[nodiscard]] File lock_for_read(const std::filesystem::path& folder);

// Appends whole lines to a file and flushes it (and the folder, for a new file) to stable storage.
// The caller holds the append lock. A failed write is undone. Returns a warning where a torn line
// was set aside.
[[nodiscard]] Result<std::optional<std::string>> append_lines(const std::filesystem::path& path,
                                                              std::string_view lines);

// Leaves a file that is there as it is.
[[nodiscard]] Status write_new_file(const std::filesystem::path& path, std::string_view text);

// Names of regular files in the folder, sorted; none where the folder does not exist. An error
// where a ledger's file should be and something else is that is no folder.
[[nodiscard]] Result<std::vector<std::string>> list_files(const std::filesystem::path& folder);
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path);
// `length` bytes from `offset` on. Error: the file ends before.
[[nodiscard]] Result<std::string> read_range(const std::filesystem::path& path, size_t offset,
                                             size_t length);

// One line of a file, without its end ("\n", or "\r\n" of a checkout with such line ends).
struct Line {
  std::string_view text;  // into the content that was split
  size_t number = 0;      // from 1
  size_t offset = 0;      // of its first byte in the file
  bool ended = true;      // false for a last line without its newline
};

// The lines of `content`, empty ones left out. It begins at byte `offset` of its file, in line
// `number`.
[[nodiscard]] std::vector<Line> split_lines(std::string_view content, size_t offset = 0,
                                            size_t number = 1);

// "folder/file:12", and what is said of a torn line there.
[[nodiscard]] std::string line_name(std::string_view path, const Line& line);
[[nodiscard]] std::string torn_text(std::string_view where);

}  // namespace reckon::ledger::jsonl
