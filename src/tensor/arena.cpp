#include "tensor/arena.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/bytes.h"

namespace reckon {
namespace {

uint64_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGE_SIZE);
  if (pages <= 0 || page <= 0) return std::numeric_limits<int64_t>::max();
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
}

void* align_up(void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return static_cast<char*>(memory) +
         (kArenaAlignment - address % kArenaAlignment) % kArenaAlignment;
}

}  // namespace

std::string_view memory_tag_name(MemoryTag tag) {
  switch (tag) {
    case MemoryTag::kWeights:
      return "weights";
    case MemoryTag::kState:
      return "state";
    case MemoryTag::kActivations:
      return "activations";
    case MemoryTag::kScratch:
      return "scratch";
  }
  return "unknown";
}

uint64_t arena_rounded(uint64_t bytes) {
  const uint64_t most = std::numeric_limits<uint64_t>::max() - (kArenaAlignment - 1);
  RECKON_CHECK(bytes <= most);
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

ArenaSet::~ArenaSet() {
  for (const Buffer& buffer : buffers_) std::free(buffer.memory);
}

Result<void*> ArenaSet::allocate(MemoryTag tag, std::string name, uint64_t bytes) {
  // The allocator would take more than the machine has and fail only when it is touched.
  const uint64_t machine = physical_bytes();
  if (bytes > machine) {
    return failed(fmt::format("cannot allocate '{}' ({}): {} wanted, but this machine has {}", name,
                              memory_tag_name(tag), format_bytes(bytes), format_bytes(machine)));
  }
  const uint64_t rounded = arena_rounded(bytes);
  // calloc takes large buffers as untouched zero pages, which an aligned allocation plus a fill
  // would not; the slack pays for the alignment.
  void* memory = std::calloc(1, rounded + kArenaAlignment);
  if (memory == nullptr) {
    return failed(fmt::format("cannot allocate '{}' ({}): the system has no {} left", name,
                              memory_tag_name(tag), format_bytes(bytes)));
  }
  adopt(tag, std::move(name), bytes);
  buffers_.back().memory = memory;
  return align_up(memory);
}

void ArenaSet::adopt(MemoryTag tag, std::string name, uint64_t bytes) {
  const uint64_t rounded = arena_rounded(bytes);
  buffers_.push_back({{tag, std::move(name), rounded}, nullptr});
  bytes_[static_cast<size_t>(tag)] += rounded;
  peak_ = std::max(peak_, total_bytes());
}

void ArenaSet::release(MemoryTag tag) {
  std::erase_if(buffers_, [tag](const Buffer& buffer) {
    if (buffer.term.tag != tag) return false;
    std::free(buffer.memory);
    return true;
  });
  bytes_[static_cast<size_t>(tag)] = 0;
}

uint64_t ArenaSet::bytes(MemoryTag tag) const {
  return bytes_[static_cast<size_t>(tag)];
}

uint64_t ArenaSet::total_bytes() const {
  uint64_t total = 0;
  for (uint64_t bytes : bytes_) total += bytes;
  return total;
}

uint64_t ArenaSet::peak_bytes() const {
  return peak_;
}

void ArenaSet::reset_peak() {
  peak_ = total_bytes();
}

std::vector<MemoryTerm> ArenaSet::terms() const {
  std::vector<MemoryTerm> terms;
  terms.reserve(buffers_.size());
  for (const Buffer& buffer : buffers_) terms.push_back(buffer.term);
  return terms;
}

}  // namespace reckon
