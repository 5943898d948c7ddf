// Device memory as a MemorySource.
#pragma once

#include <cstdint>

#include "tensor/arena.h"

namespace reckon::kernels::cuda {

class DeviceMemory final : public MemorySource {
  [[nodiscard]] Result<void*> take(uint64_t bytes) override;
  void give_back(void* memory) override;
};

}  // namespace reckon::kernels::cuda
