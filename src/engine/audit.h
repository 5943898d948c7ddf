// The report of `--audit-buffers`: what a run allocated and nothing read. Pure.
//
// A buffer counts as read where an op declared that it reads it, or the host was shown it; which
// of its bytes does not matter. Scratch counts as read once a variant asked for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/audit.h"
#include "tensor/arena.h"

namespace reckon::engine {

struct UnreadBuffer {
  std::string name;  // a weight's is its tensor's
  MemoryTag tag = MemoryTag::kWeights;
  uint64_t bytes = 0;
  std::string reason;  // "written, but never read"
};

struct AuditReport {
  std::vector<UnreadBuffer> unread;  // most bytes first
  int64_t buffers = 0;               // all that were watched, and their bytes
  uint64_t bytes = 0;
};

[[nodiscard]] AuditReport audit_report(const kernels::BufferAudit& audit);

}  // namespace reckon::engine
