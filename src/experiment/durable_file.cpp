#include "experiment/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "experiment/unique_fd.h"

namespace reckon::experiment {
namespace {

Error io_error(const std::string& path) {
  return failed(fmt::format("{}: {}", path, std::strerror(errno)));
}

Status write_and_sync(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return io_error(path);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  if (::fsync(fd) != 0) return io_error(path);
  return {};
}

// Makes a created, renamed or removed name last.
Status sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open() || ::fsync(fd.get()) != 0) return io_error(folder);
  return {};
}

}  // namespace

Status append_line(const std::string& path, std::string_view line) {
  std::error_code ignored;
  const bool created = !std::filesystem::exists(path, ignored);
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.open()) return io_error(path);
  TRY(write_and_sync(fd.get(), std::string(line) + '\n', path));
  return created ? sync_folder_of(path) : Status();
}

Status replace_file(const std::string& path, std::string_view text) {
  const std::string draft = fmt::format("{}.{}.new", path, ::getpid());
  {
    const UniqueFd fd(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd.open()) return io_error(draft);
    TRY(write_and_sync(fd.get(), text, draft));
  }
  if (std::rename(draft.c_str(), path.c_str()) != 0) return io_error(path);
  return sync_folder_of(path);
}

Status remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return sync_folder_of(path);
  return errno == ENOENT ? Status() : Status(io_error(path));
}

Result<std::string> read_if_present(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return failed(fmt::format("{}: cannot be read", path));
  return text;
}

}  // namespace reckon::experiment
