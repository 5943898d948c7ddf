// Tagged arenas: every buffer of a run is allocated (or, for mapped weights, registered) here, so
// that the memory plan can be held against what was really taken.
//
// Where the memory comes from is a MemorySource's business: the system's, or a device's.
//
// An ArenaSet belongs to one session; it is not thread-safe (allocation happens outside kernels).
// Bytes counted are the bytes asked for, rounded up to kArenaAlignment.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reckon {

enum class MemoryTag : uint8_t { kWeights, kState, kActivations, kScratch };
inline constexpr int kMemoryTagCount = 4;
inline constexpr size_t kArenaAlignment = 64;

[[nodiscard]] std::string_view memory_tag_name(MemoryTag tag);  // "weights", "state", ...

// One line of a memory plan or of an account of what was taken.
struct MemoryTerm {
  MemoryTag tag = MemoryTag::kWeights;
  std::string name;    // "kv cache", "logits", ...
  uint64_t bytes = 0;  // after rounding
};

// `bytes` rounded up to the arena's alignment; what a plan must count for one buffer.
[[nodiscard]] uint64_t arena_rounded(uint64_t bytes);

// Memory of one kind. Thread-safe. Outlives what was allocated from it.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Zeroed and kArenaAlignment-aligned; an error (one line, no subject) where there is none left.
  [[nodiscard]] Result<void*> allocate(uint64_t bytes);
  void release(void* memory, uint64_t bytes);  // as allocated
  [[nodiscard]] uint64_t held_bytes() const;   // allocated and not released, by anybody

 private:
  [[nodiscard]] virtual Result<void*> take(uint64_t bytes) = 0;
  virtual void give_back(void* memory) = 0;

  std::atomic<uint64_t> held_bytes_ = 0;
};

// The system's own memory, taken as untouched zero pages where it can be. Lives for the process.
[[nodiscard]] MemorySource& host_memory();

class ArenaSet {
 public:
  explicit ArenaSet(MemorySource& source = host_memory()) : source_(source) {}
  ~ArenaSet();
  ArenaSet(const ArenaSet&) = delete;
  ArenaSet& operator=(const ArenaSet&) = delete;

  // A zeroed, aligned buffer that lives until release() or the set's end. Fails (never aborts)
  // where the system has no such memory, with the buffer's name in the message.
  [[nodiscard]] Result<void*> allocate(MemoryTag tag, std::string name, uint64_t bytes);
  // Counts memory that somebody else owns (a mapped weight file).
  void adopt(MemoryTag tag, std::string name, uint64_t bytes);
  void release(MemoryTag tag);  // frees every buffer of the tag

  [[nodiscard]] uint64_t bytes(MemoryTag tag) const;
  [[nodiscard]] uint64_t total_bytes() const;
  [[nodiscard]] uint64_t peak_bytes() const;  // highest total since the last reset
  void reset_peak();
  [[nodiscard]] std::vector<MemoryTerm> terms() const;

  struct Buffer {
    MemoryTerm term;
    void* memory = nullptr;  // null where adopted
  };
  [[nodiscard]] std::span<const Buffer> buffers() const {
    return buffers_;
  }  // valid until a change

 private:
  MemorySource& source_;
  std::vector<Buffer> buffers_;
  std::array<uint64_t, kMemoryTagCount> bytes_{};
  uint64_t peak_ = 0;
};

}  // namespace reckon
