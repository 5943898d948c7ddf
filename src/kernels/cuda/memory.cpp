#include "kernels/cuda/memory.h"

#include <cuda_runtime_api.h>

#include "base/bytes.h"
#include "kernels/cuda/error.h"

namespace reckon::kernels::cuda {
namespace {

// The device zeroes after cudaMemset has returned, on a stream that passes' own streams do not wait
// for: on a busy device it would overwrite what they have sent by then.
Status zero(void* memory, uint64_t bytes) {
  TRY(status_of(cudaMemset(memory, 0, bytes), "zeroing device memory"));
  return status_of(cudaStreamSynchronize(nullptr), "zeroing device memory");
}

}  // namespace

Result<void*> DeviceMemory::take(uint64_t bytes) {
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
  const Status zeroed = zero(memory, bytes);
  if (!zeroed.ok()) {
    give_back(memory);
    return zeroed.error();
  }
  return memory;
}

void DeviceMemory::give_back(void* memory) {
  static_cast<void>(cudaFree(memory));
}

}  // namespace reckon::kernels::cuda
