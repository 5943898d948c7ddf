// RAII owners of what the CUDA runtime hands out. Movable, not copyable; made by create().
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/result.h"
#include "kernels/cuda/error.h"

namespace reckon::kernels::cuda {

template <typename Handle, cudaError_t (*kDestroy)(Handle)>
struct Destroyer {
  using pointer = Handle;
  void operator()(Handle handle) const { static_cast<void>(kDestroy(handle)); }
};

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>,
                               Destroyer<cudaStream_t, cudaStreamDestroy>>;
using Event =
    std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroyer<cudaEvent_t, cudaEventDestroy>>;
using Graph =
    std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, Destroyer<cudaGraph_t, cudaGraphDestroy>>;
using GraphExec = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>,
                                  Destroyer<cudaGraphExec_t, cudaGraphExecDestroy>>;

// Host memory that the device reads and writes by itself.
using Pinned = std::unique_ptr<void, Destroyer<void*, cudaFreeHost>>;

[[nodiscard]] inline Result<Stream> make_stream() {
  cudaStream_t stream = nullptr;
  TRY(status_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream"));
  return Stream(stream);
}

[[nodiscard]] inline Result<Event> make_event() {
  cudaEvent_t event = nullptr;
  TRY(status_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event"));
  return Event(event);
}

[[nodiscard]] inline Result<Pinned> make_pinned(uint64_t bytes) {
  void* memory = nullptr;
  TRY(status_of(cudaMallocHost(&memory, bytes), "pinning host memory"));
  return Pinned(memory);
}

}  // namespace reckon::kernels::cuda
