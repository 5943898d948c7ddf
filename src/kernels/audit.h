// Which buffers of a run were read and which were only paid for. Whoever allocates says what to
// watch; the dispatcher notes what every op declares (access.h) and what scratch a variant asked
// for, the executor what the host looks at.
//
// A step that is captured and replayed is noted once, while it is captured: a replay touches the
// same memory. Used from the session's thread alone; a note compares with every watched buffer,
// some microseconds an op, so that timings of an audited run are no results.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/access.h"
#include "tensor/arena.h"

namespace reckon::kernels {

class BufferAudit {
 public:
  struct Buffer {
    MemoryTag tag = MemoryTag::kWeights;
    std::string name;
    const void* data = nullptr;
    uint64_t bytes = 0;
    bool read = false;
    bool written = false;
  };

  // From now on. Buffers may overlap (then each is noted); `data` is never touched.
  void watch(MemoryTag tag, std::string name, const void* data, uint64_t bytes);

  // Marks every watched buffer that the access overlaps; memory that nobody watches is no matter.
  void note(const Access& access);

  [[nodiscard]] std::span<const Buffer> buffers() const { return buffers_; }  // as watched

 private:
  std::vector<Buffer> buffers_;
};

}  // namespace reckon::kernels
