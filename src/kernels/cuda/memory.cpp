#include "kernels/cuda/memory.h"

#include <cuda_runtime_api.h>

#include "base/bytes.h"
#include "kernels/cuda/error.h"

namespace reckon::kernels::cuda {

Result<void*> DeviceMemory::allocate(uint64_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    TRY(status_of(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for the free memory"));
    return failed(format_bytes(bytes) + " wanted, but the GPU has " + format_bytes(free_bytes) +
                  " free");
  }
  TRY(status_of(error, "allocating device memory"));
  const Status zeroed = status_of(cudaMemset(memory, 0, bytes), "zeroing device memory");
  if (!zeroed.ok()) {
    release(memory);
    return zeroed.error();
  }
  return memory;
}

void DeviceMemory::release(void* memory) {
  static_cast<void>(cudaFree(memory));
}

}  // namespace reckon::kernels::cuda
