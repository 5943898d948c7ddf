// CUDA errors as Status: what was being done, what the runtime says.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "base/result.h"

namespace reckon::kernels::cuda {

// "reading the logits: an illegal memory access was encountered"
[[nodiscard]] inline Status status_of(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());  // what can be cleared, is: the next call starts afresh
  return failed(what + ": " + cudaGetErrorString(error));
}

}  // namespace reckon::kernels::cuda
