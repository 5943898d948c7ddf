// One CUDA device as a backend.
#include <cuda_runtime_api.h>

#include <cctype>
#include <memory>
#include <string>

#include "kernels/cuda/bounds.h"
#include "kernels/cuda/error.h"
#include "kernels/cuda/executor.h"
#include "kernels/cuda/gemv.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/open.h"
#include "kernels/cuda/weight_loader.h"

namespace reckon::kernels::cuda {
namespace {

constexpr int kDevice = 0;

Device describe(const cudaDeviceProp& properties) {
  Device device;
  device.name = properties.name;
  device.vendor = "NVIDIA";
  device.backend = "cuda";
  device.features = "sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
  device.cores = properties.multiProcessorCount;
  device.memory_bytes = properties.totalGlobalMem;
  return device;
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(const cudaDeviceProp& properties, const GemvDevice& gemv)
      : device_(describe(properties)),
        variants_(variants_for(properties.major * 10 + properties.minor)),
        gemv_(gemv) {}

  const Device& device() const override { return device_; }
  std::span<const Variant> variants() const override { return variants_; }
  MemorySource& memory() override { return memory_; }

  Result<Memory> memory_state() const override {
    size_t available = 0;
    size_t total = 0;
    TRY(status_of(cudaMemGetInfo(&available, &total), "asking for the free memory"));
    return Memory{available, total, "the GPU's free memory"};
  }

  WeightLoader* weight_loader() override { return &loader_; }

  uint64_t step_bytes(int64_t max_rows) const override {
    return CudaExecutor::step_bytes(max_rows);
  }

  Result<std::unique_ptr<Executor>> make_executor(Planner& planner, Trace& trace,
                                                  const ExecutorResources& resources) override {
    return CudaExecutor::create(planner, trace, resources, gemv_);
  }

  Result<std::vector<Bound>> measure_bounds(const BoundsOptions& options) override {
    return cuda::measure_bounds(options);
  }

 private:
  Device device_;
  std::vector<Variant> variants_;
  GemvDevice gemv_;
  DeviceMemory memory_;
  CudaWeightLoader loader_;
};

Result<std::unique_ptr<CudaBackend>> open_device() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return failed("no CUDA driver is installed here");
  }
  int count = 0;
  TRY(status_of(cudaGetDeviceCount(&count), "looking for a CUDA device"));
  if (count == 0) return failed("no CUDA device here");
  TRY(status_of(cudaSetDevice(kDevice), "opening the CUDA device"));
  cudaDeviceProp properties{};
  TRY(status_of(cudaGetDeviceProperties(&properties, kDevice), "asking what the device is"));
  if (properties.major < 8) {
    return failed(std::string(properties.name) + " has compute capability " +
                  std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                  "; the CUDA kernels need 8.0 or later");
  }
  GemvDevice gemv;
  TRY(status_of(static_cast<cudaError_t>(gemv_prepare(&gemv)), "preparing the matmul kernels"));
  return std::make_unique<CudaBackend>(properties, gemv);
}

}  // namespace

std::string runtime_version() {
  return std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
}

Result<Backend*> open_backend() {
  static Result<std::unique_ptr<CudaBackend>> backend = open_device();
  if (!backend.ok()) return backend.error();
  return static_cast<Backend*>(backend->get());
}

}  // namespace reckon::kernels::cuda
