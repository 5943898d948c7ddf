// An advisory lock between processes: a file that one process at a time holds, with its pid in it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "experiment/unique_fd.h"

namespace reckon::experiment {

class FileLock {
 public:
  // Creates the file where needed. A lock whose holder is just ending is waited for, up to a
  // second. kFailed: held ("`what` … (process 4711)"), or the file cannot be made.
  [[nodiscard]] static Result<std::unique_ptr<FileLock>> acquire(const std::string& path,
                                                                 const std::string& what);
  ~FileLock();  // releases it and removes the file
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  UniqueFd fd_;
};

}  // namespace reckon::experiment
