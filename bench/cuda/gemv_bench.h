// Shared by the two halves of gemv_bench: device buffers that fail loudly, and the checks.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "kernels/cuda/gemv.h"

namespace reckon::bench {

inline void require(int error, const char* what, int line) {
  if (error == 0) return;
  std::fprintf(stderr, "%s (line %d): %s\n", what, line,
               cudaGetErrorString(static_cast<cudaError_t>(error)));
  std::exit(1);
}
#define REQUIRE_CUDA(call) ::reckon::bench::require((call), #call, __LINE__)

// Device memory, freed with the object.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  explicit DeviceBytes(int64_t bytes) : bytes_(bytes) {
    REQUIRE_CUDA(cudaMalloc(&data_, static_cast<size_t>(bytes)));
  }
  DeviceBytes(DeviceBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  DeviceBytes& operator=(DeviceBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBytes() { cudaFree(data_); }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

enum class CheckSize { kSmall, kFull };

// Compares the kernels with a float64 reference and with themselves; prints what fails and a line
// a type. Returns the number of failures.
int check_gemv(const kernels::cuda::GemvDevice& device, CheckSize size);

}  // namespace reckon::bench
