#include "formats/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "formats/file_error.h"

namespace reckon {
namespace {

// Closes the descriptor at the end of the scope; a mapping outlives its descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
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
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    return file_error(path, fmt::format("cannot open: {}", std::strerror(errno)));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0) {
    return file_error(path, fmt::format("cannot stat: {}", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) return file_error(path, "expected a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return copy_of(path, "");
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    return file_error(path, fmt::format("cannot map {} bytes: {}", size, std::strerror(errno)));
  }
  const auto unmap = [size](const char* memory) { munmap(const_cast<char*>(memory), size); };
  MappedFile mapped(path, Memory(static_cast<const char*>(data), unmap), size);
  mapped.stamp_ = stamp_of(status);
  return mapped;
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
  constexpr uintptr_t kPage = 4096;
  if (offset >= size_) return;
  const auto begin = reinterpret_cast<uintptr_t>(memory_.get() + offset) / kPage * kPage;
  const auto end =
      reinterpret_cast<uintptr_t>(memory_.get() + offset + std::min(bytes, size_ - offset));
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

MappedFile::MappedFile(std::string path, Memory memory, size_t size)
    : path_(std::move(path)), memory_(std::move(memory)), size_(size) {}

}  // namespace reckon
