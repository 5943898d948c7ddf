#include "formats/new_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "formats/file_error.h"

namespace reckon {
namespace {

// Writes all of `bytes` by calls of `put(rest)`, which returns as write() does.
template <typename Put>
bool write_all(std::string_view bytes, const Put& put) {
  while (!bytes.empty()) {
    const ssize_t written = put(bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

NewFile::NewFile(const std::string& path)
    : NewFile(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644), false) {}

NewFile::NewFile(std::string path, int fd, bool draft)
    : path_(std::move(path)), fd_(fd), create_error_(errno), draft_(draft) {}

NewFile NewFile::beside(const std::string& path) {
  std::string draft = path + ".XXXXXX";
  const int fd = ::mkostemp(draft.data(), O_CLOEXEC);
  if (fd >= 0) (void)::fchmod(fd, 0644);
  return {std::move(draft), fd, true};
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  if (draft_) (void)::unlink(path_.c_str());
  ::close(fd_);
}

Error NewFile::error() const {
  return file_error(path_, std::strerror(fd_ < 0 ? create_error_ : errno));
}

Status NewFile::write(std::string_view bytes) {
  const auto put = [&](std::string_view rest) { return ::write(fd_, rest.data(), rest.size()); };
  if (fd_ < 0 || !write_all(bytes, put)) return error();
  return {};
}

Status NewFile::write_at(uint64_t offset, std::string_view bytes) {
  const char* begin = bytes.data();
  const auto put = [&](std::string_view rest) {
    const auto at = static_cast<off_t>(offset + static_cast<uint64_t>(rest.data() - begin));
    return ::pwrite(fd_, rest.data(), rest.size(), at);
  };
  if (fd_ < 0 || !write_all(bytes, put)) return error();
  return {};
}

Status NewFile::sync() {
  if (fd_ < 0 || ::fsync(fd_) != 0) return error();
  return {};
}

Status NewFile::rename_to(const std::string& path) {
  if (fd_ < 0 || std::rename(path_.c_str(), path.c_str()) != 0) return error();
  path_ = path;
  draft_ = false;
  return {};
}

Status replace_file(const std::string& path, std::string_view bytes) {
  NewFile draft = NewFile::beside(path);
  TRY(draft.write(bytes));
  return draft.rename_to(path);
}

}  // namespace reckon
