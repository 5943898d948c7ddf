#include "formats/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "formats/file_error.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kRights = 0644;
constexpr size_t kDraftDigits = 16;

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

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string draft_start(const std::string& path) {
  return fmt::format(".{}.reckon-draft-", fs::path(path).filename().string());
}

std::string new_draft_path(const std::string& path) {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    number = static_cast<uint64_t>(::getpid());
  }
  return fmt::format("{}/{}{:016x}", folder_of(path), draft_start(path), number);
}

bool is_draft_name(std::string_view name, std::string_view start) {
  if (!name.starts_with(start) || name.size() != start.size() + kDraftDigits) return false;
  return name.find_first_not_of("0123456789abcdef", start.size()) == std::string_view::npos;
}

// Whether a file is what remove_drafts() removes, name and lock apart.
bool holds_draft(int fd, std::span<const std::string_view> beginnings) {
  char head[16];
  const ssize_t read = ::pread(fd, head, sizeof head, 0);
  if (read <= 0) return read == 0;
  const std::string_view bytes(head, static_cast<size_t>(read));
  return std::ranges::any_of(beginnings,
                             [&](std::string_view start) { return bytes.starts_with(start); });
}

bool has_name(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) != 0 || status.st_nlink > 0;
}

// How a file without a name is spoken of, for linkat().
std::string by_descriptor(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

}  // namespace

NewFile::NewFile(const std::string& path)
    : NewFile(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kRights),
              Kind::kFile) {}

NewFile::NewFile(std::string path, int fd, Kind kind)
    : path_(std::move(path)), fd_(fd), create_error_(errno), kind_(kind) {}

NewFile NewFile::beside(const std::string& path) {
  const int fd = ::open(folder_of(path).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, kRights);
  if (fd >= 0 && ::access(by_descriptor(fd).c_str(), F_OK) == 0) {
    (void)::flock(fd, LOCK_EX);
    return {path, fd, Kind::kUnnamedDraft};
  }
  if (fd >= 0) ::close(fd);
  return named_draft(path);
}

NewFile NewFile::named_draft(const std::string& path) {
  for (;;) {
    std::string draft = new_draft_path(path);
    const int fd = ::open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kRights);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd >= 0) {
      (void)::flock(fd, LOCK_EX);
      if (!has_name(fd)) {  // somebody took it for an abandoned one in the moment before
        ::close(fd);
        continue;
      }
    }
    return {std::move(draft), fd, Kind::kNamedDraft};
  }
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  if (kind_ == Kind::kNamedDraft) (void)::unlink(path_.c_str());
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

// A link never replaces a file, so that even what had no name gets the name of a draft first.
Status NewFile::give_name() {
  const std::string self = by_descriptor(fd_);
  for (;;) {
    std::string draft = new_draft_path(path_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, draft.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      path_ = std::move(draft);
      kind_ = Kind::kNamedDraft;
      return {};
    }
    if (errno != EEXIST) return error();
  }
}

Status NewFile::rename_to(const std::string& path) {
  if (fd_ < 0) return error();
  if (kind_ == Kind::kUnnamedDraft) TRY(give_name());
  if (std::rename(path_.c_str(), path.c_str()) != 0) {
    return file_error(path, std::strerror(errno));
  }
  path_ = path;
  kind_ = Kind::kFile;
  return {};
}

void remove_drafts(const std::string& path, std::span<const std::string_view> beginnings) {
  const std::string start = draft_start(path);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_of(path), ignored)) {
    if (!is_draft_name(entry.path().filename().string(), start)) continue;
    const int fd = ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    struct stat status {};
    const bool is_file = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (is_file && ::flock(fd, LOCK_EX | LOCK_NB) == 0 && holds_draft(fd, beginnings)) {
      (void)::unlink(entry.path().c_str());
    }
    ::close(fd);
  }
}

Status replace_file(const std::string& path, std::string_view bytes) {
  NewFile draft = NewFile::beside(path);
  TRY(draft.write(bytes));
  return draft.rename_to(path);
}

}  // namespace reckon
