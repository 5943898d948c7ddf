// Device memory as a MemorySource.
#pragma once

#include <cstdint>

#include "tensor/arena.h"

namespace reckon::kernels::cuda {

class DeviceMemory final : public MemorySource {
 public:
  [[nodiscard]] Result<void*> allocate(uint64_t bytes) override;
  void release(void* memory) override;
};

}  // namespace reckon::kernels::cuda
