#include "tensor/arena.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
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

class HostMemory final : public MemorySource {
  Result<void*> take(uint64_t bytes) override {
    // The allocator would take more than the machine has and fail only when it is touched.
    const uint64_t machine = physical_bytes();
    if (bytes > machine) {
      return failed(fmt::format("{} wanted, but this machine has {}", format_bytes(bytes),
                                format_bytes(machine)));
    }
    // calloc takes large buffers as untouched zero pages, which an aligned allocation plus a fill
    // would not. The slack pays for the alignment; the pointer to release stands before the data.
    void* memory = std::calloc(1, bytes + kArenaAlignment + sizeof(void*));
    if (memory == nullptr) {
      return failed(fmt::format("the system has no {} left", format_bytes(bytes)));
    }
    const auto first = reinterpret_cast<uintptr_t>(memory) + sizeof(void*);
    const uintptr_t aligned = (first + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    auto* data = static_cast<char*>(memory) + (aligned - reinterpret_cast<uintptr_t>(memory));
    std::memcpy(data - sizeof(void*), &memory, sizeof(void*));
    return static_cast<void*>(data);
  }

  void give_back(void* data) override {
    void* memory = nullptr;
    std::memcpy(&memory, static_cast<char*>(data) - sizeof(void*), sizeof(void*));
    std::free(memory);
  }
};

}  // namespace

Result<void*> MemorySource::allocate(uint64_t bytes) {
  Result<void*> memory = take(bytes);
  if (memory.ok()) held_bytes_ += bytes;
  return memory;
}

void MemorySource::release(void* memory, uint64_t bytes) {
  RECKON_CHECK(bytes <= held_bytes_);
  give_back(memory);
  held_bytes_ -= bytes;
}

uint64_t MemorySource::held_bytes() const {
  return held_bytes_;
}

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

MemorySource& host_memory() {
  static HostMemory memory;
  return memory;
}

ArenaSet::~ArenaSet() {
  for (const Buffer& buffer : buffers_) {
    if (buffer.memory != nullptr) source_.release(buffer.memory, buffer.term.bytes);
  }
}

Result<void*> ArenaSet::allocate(MemoryTag tag, std::string name, uint64_t bytes) {
  // What cannot be rounded cannot be had: the source says so in its own words.
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  Result<void*> memory = source_.allocate(bytes > kMost ? bytes : arena_rounded(bytes));
  if (!memory.ok()) {
    return failed(fmt::format("cannot allocate '{}' ({}): {}", name, memory_tag_name(tag),
                              memory.error().message));
  }
  adopt(tag, std::move(name), bytes);
  buffers_.back().memory = *memory;
  return memory;
}

void ArenaSet::adopt(MemoryTag tag, std::string name, uint64_t bytes) {
  const uint64_t rounded = arena_rounded(bytes);
  buffers_.push_back({{tag, std::move(name), rounded}, nullptr});
  bytes_[static_cast<size_t>(tag)] += rounded;
  peak_ = std::max(peak_, total_bytes());
}

void ArenaSet::release(MemoryTag tag) {
  std::erase_if(buffers_, [&](const Buffer& buffer) {
    if (buffer.term.tag != tag) return false;
    if (buffer.memory != nullptr) source_.release(buffer.memory, buffer.term.bytes);
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
