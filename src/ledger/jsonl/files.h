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

// Names of regular files in the folder, sorted; none where the folder does not exist.
[[nodiscard]] Result<std::vector<std::string>> list_files(const std::filesystem::path& folder);
[[nodiscard]] Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace reckon::ledger::jsonl
