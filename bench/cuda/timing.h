// What the timing programs of CUDA kernels share: device memory, a context as kernels get it, and
// medians of graph replays. A CUDA error ends the program. For .cu files, one thread.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/blaslt.h"
#include "kernels/cuda/queue.h"
#include "kernels/dispatch.h"

namespace reckon::bench {

inline void must(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("CUDA: %s\n", cudaGetErrorString(error));
  std::exit(2);
}

__device__ inline uint32_t mixed(uint64_t z) {
  z = (z + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>(z >> 16);
}

__device__ inline float normal_at(uint64_t i) {
  const float u = (static_cast<float>(mixed(2 * i) >> 8) + 1) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cospif(static_cast<float>(mixed(2 * i + 1) >> 8) * 0x1p-23f);
}

template <typename T>
__global__ void fill_normal(T* out, uint64_t count, float deviation) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * blockDim.x) {
    out[i] = static_cast<T>(normal_at(i) * deviation);
  }
}

template <typename T>
class Device {
 public:
  explicit Device(size_t count) : count_(count) { must(cudaMalloc(&data_, count * sizeof(T))); }
  // Normal values.
  Device(size_t count, float deviation) : Device(count) {
    fill_normal<<<2048, 256>>>(data_, count, deviation);
    must(cudaDeviceSynchronize());
  }
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] size_t size() const { return count_; }

 private:
  T* data_ = nullptr;
  size_t count_;
};

// A stream, scratch and the matrix library, without plan, trace and threads.
class Bench {
 public:
  explicit Bench(uint64_t scratch_bytes)
      : scratch_(scratch_bytes), input_(1), tokens_(size_t{1} << 16) {
    must(cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking));
    must(cudaMemset(tokens_.data(), 0, tokens_.size() * sizeof(int32_t)));
    queue.input = input_.data();
    queue.tokens = tokens_.data();
    if (kernels::cuda::blaslt_available()) {
      auto library = kernels::cuda::BlasLt::create();
      if (library.ok()) library_ = std::move(*library);
    }
    queue.matmul_library = library_.get();
    context.queue = &queue;
    context.scratch = scratch_.data();
    context.scratch_bytes = context.declared_bytes = scratch_bytes;
  }
  void step(int64_t first_position, double temperature = 0, double uniform = 0) {
    wait();
    const kernels::cuda::StepInput input{first_position, temperature, uniform};
    must(cudaMemcpy(input_.data(), &input, sizeof input, cudaMemcpyHostToDevice));
    must(cudaDeviceSynchronize());  // a small copy may still be under way
  }
  void wait() const {
    must(cudaStreamSynchronize(queue.stream));
    must(cudaGetLastError());
    if (context.error.empty()) return;
    std::printf("a kernel failed: %s\n", context.error.c_str());
    std::exit(2);
  }

  kernels::cuda::Queue queue;
  kernels::KernelContext context;

 private:
  Device<char> scratch_;
  Device<kernels::cuda::StepInput> input_;
  Device<int32_t> tokens_;
  std::unique_ptr<kernels::cuda::BlasLt> library_;  // null where it is missing
};

// One thing to time: `calls` of it, captured, so that the host's launches are not measured. Several
// are compared by running them in turn.
class Replay {
 public:
  Replay(const Bench& bench, int calls, const std::function<void(int)>& call)
      : stream_(bench.queue.stream), calls_(calls) {
    call(0);  // heuristics, function attributes, module load
    bench.wait();
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) call(i);
    must(cudaStreamEndCapture(stream_, &graph_));
    must(cudaGraphInstantiate(&exec_, graph_, 0));
    must(cudaEventCreate(&start_));
    must(cudaEventCreate(&stop_));
  }
  ~Replay() {
    cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  void run() {
    must(cudaEventRecord(start_, stream_));
    must(cudaGraphLaunch(exec_, stream_));
    must(cudaEventRecord(stop_, stream_));
    must(cudaEventSynchronize(stop_));
    float ms = 0;
    must(cudaEventElapsedTime(&ms, start_, stop_));
    times_.push_back(static_cast<double>(ms) * 1000 / calls_);
  }
  // Microseconds a call; the first two runs do not count.
  [[nodiscard]] double median() const {
    std::vector<double> sorted(times_.begin() + 2, times_.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  cudaStream_t stream_;
  int calls_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  std::vector<double> times_;
};

// Microseconds a call of one thing by itself.
inline double time_us(const Bench& bench, int calls, const std::function<void(int)>& call,
                      int runs = 17) {
  Replay replay(bench, calls, call);
  for (int i = 0; i < runs; ++i) replay.run();
  return replay.median();
}

inline void print_device() {
  cudaDeviceProp properties{};
  must(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
}

}  // namespace reckon::bench
