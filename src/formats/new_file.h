// Writing files so that a reader sees all of them or nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reckon {

// A file being written, closed at the end. Errors name the path and the system's reason.
class NewFile {
 public:
  // Creates the file; fails, at the first write, where it is there.
  explicit NewFile(const std::string& path);
  // A draft of the file at `path`, in its folder and locked (flock) until it is closed. It has no
  // name before rename_to(), so that nothing is left of it however the process ends; where the file
  // system has no such files it is a named_draft().
  [[nodiscard]] static NewFile beside(const std::string& path);
  // Likewise, by the name ".NAME.reckon-draft-" and 16 hexadecimal digits; removed unless it gets
  // another. A process that is killed leaves it to remove_drafts().
  [[nodiscard]] static NewFile named_draft(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // The file's name; of a draft that has none, the one that it is for.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Status write(std::string_view bytes);
  [[nodiscard]] Status write_at(uint64_t offset, std::string_view bytes);
  [[nodiscard]] Status sync();  // to stable storage
  // In the place of whatever is there.
  [[nodiscard]] Status rename_to(const std::string& path);

 private:
  enum class Kind { kFile, kNamedDraft, kUnnamedDraft };
  NewFile(std::string path, int fd, Kind kind);
  [[nodiscard]] Error error() const;
  [[nodiscard]] Status give_name();

  std::string path_;
  int fd_;
  int create_error_;  // where fd_ < 0
  Kind kind_;
};

// Removes named drafts of the file at `path` whose writers are gone: files of exactly such a name,
// locked by nobody, that are empty or start with one of `beginnings`.
void remove_drafts(const std::string& path, std::span<const std::string_view> beginnings);

// Puts `bytes` in the place of the file at `path`, whether or not there is one, by renaming. A
// reader sees the old file or the new one. Nothing is left behind where it fails.
[[nodiscard]] Status replace_file(const std::string& path, std::string_view bytes);

}  // namespace reckon
