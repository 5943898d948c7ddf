#include "kernels/audit.h"

#include <utility>

namespace reckon::kernels {

void BufferAudit::watch(MemoryTag tag, std::string name, const void* data, uint64_t bytes) {
  buffers_.push_back({tag, std::move(name), data, bytes, false, false});
}

void BufferAudit::note(const Access& access) {
  const auto begin = reinterpret_cast<uintptr_t>(access.data);
  const uintptr_t end = begin + access.bytes;
  for (Buffer& buffer : buffers_) {
    const auto first = reinterpret_cast<uintptr_t>(buffer.data);
    if (begin >= first + buffer.bytes || end <= first || begin == end) continue;
    buffer.read = buffer.read || access.kind != AccessKind::kWrite;
    buffer.written = buffer.written || access.kind != AccessKind::kRead;
  }
}

}  // namespace reckon::kernels
