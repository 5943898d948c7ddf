#include "ledger/jsonl/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "ledger/event.h"
#include "ledger/writer.h"

namespace reckon::ledger::jsonl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".jsonl";
constexpr std::string_view kTornMark = ".torn-";
// Two clones may both append to one writer's file: git is to keep the lines of both.
constexpr std::string_view kAttributesName = ".gitattributes";
constexpr std::string_view kAttributes = "*.jsonl merge=union\n";
constexpr mode_t kFileMode = 0644;
constexpr size_t kReadBytes = 65536;

template <typename Call>
auto retry(Call call) {
  while (true) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

Error system_error(const fs::path& path, std::string_view action) {
  const int code = errno;
  return failed(fmt::format("{}: cannot {}: {}", path.string(), action,
                            std::generic_category().message(code)));
}

Result<File> open_file(const fs::path& path, int flags) {
  File file(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kFileMode); }));
  if (file.get() < 0) return system_error(path, "open");
  return file;
}

Status flush(const File& file, const fs::path& path) {
  // Some filesystems cannot flush a folder and say EINVAL.
  if (retry([&] { return ::fsync(file.get()); }) != 0 && errno != EINVAL) {
    return system_error(path, "flush");
  }
  return {};
}

Status flush_folder(const fs::path& folder) {
  TRY_ASSIGN(const File file, open_file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY));
  return flush(file, folder);
}

Status write_all(const File& file, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = retry([&] { return ::write(file.get(), bytes.data(), bytes.size()); });
    if (written < 0) return system_error(path, "write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status truncate(const File& file, off_t size, const fs::path& path) {
  if (retry([&] { return ::ftruncate(file.get(), size); }) != 0) {
    return system_error(path, "truncate");
  }
  return {};
}

// What follows the last newline of a file of `size` bytes.
Result<std::string> read_tail(const File& file, off_t size, const fs::path& path) {
  std::string tail;
  while (size > 0) {
    std::array<char, kReadBytes> buffer;
    const size_t wanted = std::min(static_cast<size_t>(size), buffer.size());
    const off_t from = size - static_cast<off_t>(wanted);
    const ssize_t got = retry([&] { return ::pread(file.get(), buffer.data(), wanted, from); });
    if (got != static_cast<ssize_t>(wanted)) return system_error(path, "read");
    const std::string_view block(buffer.data(), wanted);
    const size_t newline = block.rfind('\n');
    if (newline != std::string_view::npos) {
      tail.insert(0, block.substr(newline + 1));
      return tail;
    }
    tail.insert(0, block);
    size = from;
  }
  return tail;
}

// Copies the tail into a new file beside `path`, on stable storage. Returns the new file's path.
Result<fs::path> set_aside(const fs::path& path, std::string_view tail) {
  fs::path torn;
  std::error_code ignored;
  int n = 0;
  do {
    torn = fmt::format("{}{}{}", path.string(), kTornMark, ++n);
  } while (fs::exists(torn, ignored));
  TRY_ASSIGN(const File file, open_file(torn, O_WRONLY | O_CREAT | O_EXCL));
  TRY(write_all(file, tail, torn));
  TRY(flush(file, torn));
  TRY(flush_folder(path.parent_path()));
  return torn;
}

// With all missing parents, each flushed into its own parent.
Status create_folder(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return {};
  const fs::path parent = folder.parent_path();
  TRY(create_folder(parent));
  fs::create_directory(folder, error);  // no error where another process was faster
  if (error) {
    return failed(
        fmt::format("{}: cannot create the ledger folder: {}", folder.string(), error.message()));
  }
  return flush_folder(parent);
}

}  // namespace

bool is_ledger_file_name(std::string_view name) {
  constexpr std::string_view kMonth = "-dddd-dd";
  if (!name.ends_with(kExtension)) return false;
  name.remove_suffix(kExtension.size());
  if (name.size() <= kMonth.size()) return false;
  const std::string_view month = name.substr(name.size() - kMonth.size());
  for (size_t i = 0; i < kMonth.size(); ++i) {
    const bool digit = month[i] >= '0' && month[i] <= '9';
    if (kMonth[i] == 'd' ? !digit : month[i] != '-') return false;
  }
  return is_writer_name(name.substr(0, name.size() - kMonth.size()));
}

bool is_torn_file_name(std::string_view name) {
  const size_t mark = name.rfind(kTornMark);
  return mark != std::string_view::npos && is_ledger_file_name(name.substr(0, mark));
}

std::string ledger_file_name(std::string_view writer, std::string_view time) {
  return fmt::format("{}-{}{}", writer, time.substr(0, 7), kExtension);
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Status relock(const File& file, LockKind kind) {
  const int operation = kind == LockKind::kShared      ? LOCK_SH
                        : kind == LockKind::kExclusive ? LOCK_EX
                                                       : LOCK_EX | LOCK_NB;
  if (retry([&] { return ::flock(file.get(), operation); }) == 0) return {};
  return failed(std::generic_category().message(errno));
}

Result<File> lock_file(const fs::path& path, LockKind kind) {
  TRY_ASSIGN(File file, open_file(path, O_RDWR | O_CREAT));
  if (const Status status = relock(file, kind); !status.ok()) {
    return failed(fmt::format("{}: cannot lock: {}", path.string(), status.error().message));
  }
  return file;
}

Result<File> lock_for_append(const fs::path& folder) {
  TRY(create_folder(folder));
  TRY(write_new_file(folder / kAttributesName, kAttributes));
  return lock_file(folder / kMarkerName, LockKind::kExclusive);
}

File lock_for_read(const fs::path& folder) {
  Result<File> file = open_file(folder / kMarkerName, O_RDONLY);
  if (!file.ok() || retry([&] { return ::flock(file->get(), LOCK_SH); }) != 0) return File();
  return std::move(file).value();
}

Result<std::optional<std::string>> append_lines(const fs::path& path, std::string_view lines) {
  std::error_code ignored;
  const bool is_new = !fs::exists(path, ignored);
  TRY_ASSIGN(const File file, open_file(path, O_RDWR | O_CREAT | O_APPEND));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "examine");

  std::optional<std::string> warning;
  std::string text;
  off_t size = info.st_size;
  TRY_ASSIGN(const std::string tail, read_tail(file, size, path));
  if (!tail.empty() && parse_event_line(tail, "").ok()) {
    text = "\n";  // only the newline is missing: its checksum says that the event is whole
  } else if (!tail.empty()) {
    TRY_ASSIGN(const fs::path torn, set_aside(path, tail));
    size -= static_cast<off_t>(tail.size());
    TRY(truncate(file, size, path));
    warning = fmt::format("{}: its last line, cut short by a crash, was set aside in {}",
                          path.string(), torn.filename().string());
  }
  text += lines;
  const Status status = write_all(file, text, path);
  if (!status.ok()) {
    if (truncate(file, size, path).ok()) return status.error();
    return failed(status.error().message + "; what was written is set aside by the next append");
  }
  TRY(flush(file, path));
  if (is_new) TRY(flush_folder(path.parent_path()));
  return warning;
}

Status write_new_file(const fs::path& path, std::string_view text) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return {};
  TRY_ASSIGN(const File file, open_file(path, O_WRONLY | O_CREAT | O_TRUNC));
  return write_all(file, text, path);
}

Result<std::vector<std::string>> list_files(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return names;
  fs::directory_iterator it(folder, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    std::string name = it->path().filename().string();
    if (it->is_regular_file(ignored)) {
      names.push_back(std::move(name));
    } else if (is_ledger_file_name(name) && !it->is_directory(ignored)) {
      return failed(it->path().string() +
                    ": named as a ledger's file, but a pipe, a device or a link that leads to no "
                    "file: events may be missing");
    }
  }
  if (error) {
    return failed(
        fmt::format("{}: cannot list the ledger folder: {}", folder.string(), error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> read_file(const fs::path& path) {
  TRY_ASSIGN(const File file, open_file(path, O_RDONLY));
  std::string content;
  std::vector<char> buffer(kReadBytes);
  while (true) {
    const ssize_t got = retry([&] { return ::read(file.get(), buffer.data(), buffer.size()); });
    if (got < 0) return system_error(path, "read");
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(got));
  }
}

Result<std::string> read_range(const fs::path& path, size_t offset, size_t length) {
  TRY_ASSIGN(const File file, open_file(path, O_RDONLY));
  std::string content(length, '\0');
  size_t done = 0;
  while (done < length) {
    const ssize_t got = retry([&] {
      return ::pread(file.get(), content.data() + done, length - done,
                     static_cast<off_t>(offset + done));
    });
    if (got < 0) return system_error(path, "read");
    if (got == 0) return failed(fmt::format("{}: shorter than expected", path.string()));
    done += static_cast<size_t>(got);
  }
  return content;
}

std::vector<Line> split_lines(std::string_view content, size_t offset, size_t number) {
  std::vector<Line> lines;
  for (; !content.empty(); ++number) {
    const size_t newline = content.find('\n');
    const bool ended = newline != std::string_view::npos;
    Line line{content.substr(0, newline), number, offset, ended};
    const size_t taken = ended ? newline + 1 : content.size();
    content.remove_prefix(taken);
    offset += taken;
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);
    if (!line.text.empty()) lines.push_back(line);
  }
  return lines;
}

std::string line_name(std::string_view path, const Line& line) {
  return fmt::format("{}:{}", path, line.number);
}

std::string torn_text(std::string_view where) {
  return fmt::format("{}: a line that a crash cut short, left out; the next append sets it aside",
                     where);
}

}  // namespace reckon::ledger::jsonl
