#include "engine/audit.h"

#include <algorithm>
#include <functional>

namespace reckon::engine {
namespace {

std::string reason_of(const kernels::BufferAudit::Buffer& buffer) {
  if (buffer.tag == MemoryTag::kScratch) return "no kernel asked for it";
  return buffer.written ? "written, but never read" : "no op read or wrote it";
}

}  // namespace

AuditReport audit_report(const kernels::BufferAudit& audit) {
  AuditReport report;
  for (const kernels::BufferAudit::Buffer& buffer : audit.buffers()) {
    ++report.buffers;
    report.bytes += buffer.bytes;
    if (buffer.read) continue;
    report.unread.push_back({buffer.name, buffer.tag, buffer.bytes, reason_of(buffer)});
  }
  std::ranges::stable_sort(report.unread, std::greater<>(), &UnreadBuffer::bytes);
  return report;
}

}  // namespace reckon::engine
