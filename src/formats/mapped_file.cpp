#include "formats/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.h"
#include "formats/file_error.h"

namespace reckon {
namespace {

constexpr uintptr_t kPage = 4096;

// The table of mappings. A slot is taken by its name and given back in the reverse order, so that
// whoever finds an address between begin and end finds a name.
struct Slot {
  std::atomic<const char*> name;
  std::atomic<uintptr_t> begin;
  std::atomic<uintptr_t> end;
};
constinit std::array<Slot, 512> mappings{};

void leave(Slot& slot) {
  slot.end = 0;
  slot.begin = 0;
  slot.name = nullptr;
}

// Null where the table is full.
Slot* enter(const char* name, const void* memory, size_t size) {
  for (Slot& slot : mappings) {
    const char* none = nullptr;
    if (!slot.name.compare_exchange_strong(none, name)) continue;
    slot.begin = reinterpret_cast<uintptr_t>(memory);
    slot.end = slot.begin + size;
    return &slot;
  }
  return nullptr;
}

// What a mapping holds beside its memory.
class Mapping {
 public:
  Mapping(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~Mapping() {
    if (slot_ != nullptr) leave(*slot_);
    if (memory_ != nullptr) munmap(memory_, size_);
    if (fd_ >= 0) close(fd_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] int descriptor() const { return fd_; }
  // Null where the system does not.
  [[nodiscard]] const char* map(size_t size) {
    void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd_, 0);
    if (memory == MAP_FAILED) return nullptr;
    memory_ = memory;
    size_ = size;
    slot_ = enter(name_.c_str(), memory, (size + kPage - 1) / kPage * kPage);
    return static_cast<const char*>(memory);
  }

 private:
  int fd_;
  std::string name_;
  void* memory_ = nullptr;
  size_t size_ = 0;
  Slot* slot_ = nullptr;
};

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileStamp stamp_of(const struct stat& status) {
  return {static_cast<uint64_t>(status.st_size), nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto mapping = std::make_shared<Mapping>(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), one_line(path));
  if (mapping->descriptor() < 0) {
    return file_error(path, fmt::format("cannot open: {}", std::strerror(errno)));
  }
  struct stat status {};
  if (fstat(mapping->descriptor(), &status) != 0) {
    return file_error(path, fmt::format("cannot stat: {}", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) return file_error(path, "expected a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return copy_of(path, "");
  const char* data = mapping->map(size);
  if (data == nullptr) {
    return file_error(path, fmt::format("cannot map {} bytes: {}", size, std::strerror(errno)));
  }
  MappedFile mapped(path, Memory(data, [mapping](const char*) {}), size);
  mapped.stamp_ = stamp_of(status);
  mapped.fd_ = mapping->descriptor();
  return mapped;
}

FileChange MappedFile::change() const {
  struct stat now {};
  struct stat named {};
  if (fd_ < 0) return FileChange::kNone;
  if (fstat(fd_, &now) != 0) return FileChange::kWritten;
  const FileStamp stamp = stamp_of(now);
  if (stamp.bytes != stamp_.bytes || stamp.modified_ns != stamp_.modified_ns) {
    return FileChange::kWritten;
  }
  const bool is_named =
      stat(path_.c_str(), &named) == 0 && named.st_dev == now.st_dev && named.st_ino == now.st_ino;
  if (!is_named) return FileChange::kReplaced;
  return stamp == stamp_ ? FileChange::kNone : FileChange::kTouched;
}

const char* mapped_file_at(const void* address) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const Slot& slot : mappings) {
    if (at >= slot.begin && at < slot.end) return slot.name;
  }
  return nullptr;
}

MappedFile MappedFile::copy_of(std::string name, std::string_view bytes) {
  constexpr std::align_val_t kAlignment{64};
  auto* memory = static_cast<char*>(::operator new(bytes.size(), kAlignment));
  std::copy(bytes.begin(), bytes.end(), memory);
  const auto release = [](const char* data) {
    ::operator delete(const_cast<char*>(data), kAlignment);
  };
  return {std::move(name), Memory(memory, release), bytes.size()};
}

void MappedFile::read_ahead(size_t offset, size_t bytes) const {
  if (offset >= size_) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory_.get() + offset) / kPage * kPage;
  const auto end =
      reinterpret_cast<uintptr_t>(memory_.get() + offset + std::min(bytes, size_ - offset));
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

MappedFile::MappedFile(std::string path, Memory memory, size_t size)
    : path_(std::move(path)), memory_(std::move(memory)), size_(size) {}

}  // namespace reckon
