#include "experiment/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace reckon::experiment {
namespace {

constexpr int kTries = 50;
constexpr std::chrono::milliseconds kBetweenTries{20};

// The holder before us may have removed the file that we opened.
bool still_named(int fd, const std::string& path) {
  struct stat ours {};
  struct stat named {};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &named) == 0 &&
         ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

std::string holder(int fd) {
  char text[32] = {};
  const ssize_t got = ::pread(fd, text, sizeof text - 1, 0);
  const std::string pid(text, got > 0 ? static_cast<size_t>(got) : 0);
  return pid.empty() ? "another process" : "process " + pid;
}

Status write_pid(int fd, const std::string& path) {
  const std::string pid = fmt::format("{}", ::getpid());
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return failed(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<FileLock>> FileLock::acquire(const std::string& path,
                                                    const std::string& what) {
  std::string held_by;
  for (int i = 0; i < kTries; ++i) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd.open()) return failed(fmt::format("{}: {}", path, std::strerror(errno)));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
      if (!still_named(fd.get(), path)) continue;
      TRY(write_pid(fd.get(), path));
      return std::unique_ptr<FileLock>(new FileLock(path, std::move(fd)));
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return failed(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    held_by = holder(fd.get());
    std::this_thread::sleep_for(kBetweenTries);
  }
  return failed(fmt::format("{} by {}; wait until it ends ({})", what, held_by, path));
}

FileLock::~FileLock() {
  ::unlink(path_.c_str());
}

}  // namespace reckon::experiment
