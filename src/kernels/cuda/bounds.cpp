// Times the kernels of bounds_loops.h with the device's own clock: each repetition between two
// events on one stream.
#include "kernels/cuda/bounds.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "kernels/cuda/bounds_loops.h"
#include "kernels/cuda/handles.h"

namespace reckon::kernels::cuda {
namespace {

constexpr int64_t kBufferBytes = int64_t{8} << 30;

using DeviceBuffer = std::unique_ptr<void, Destroyer<void*, cudaFree>>;

Result<DeviceBuffer> make_buffer(int64_t bytes) {
  void* memory = nullptr;
  TRY(status_of(cudaMalloc(&memory, static_cast<size_t>(bytes)),
                "taking " + format_bytes(static_cast<uint64_t>(bytes)) + " to measure"));
  return DeviceBuffer(memory);
}

// Queues the work to be timed; the result is a cudaError_t.
using Work = std::function<int(cudaStream_t stream)>;

class Timer {
 public:
  [[nodiscard]] static Result<Timer> create() {
    Timer timer;
    TRY_ASSIGN(timer.stream_, make_stream());
    for (Event* event : {&timer.start_, &timer.end_}) {
      cudaEvent_t raw = nullptr;
      TRY(status_of(cudaEventCreate(&raw), "making an event"));
      event->reset(raw);
    }
    return timer;
  }

  [[nodiscard]] Result<double> seconds(const Work& work) const {
    TRY(status_of(cudaEventRecord(start_.get(), stream_.get()), "marking a start"));
    TRY(status_of(static_cast<cudaError_t>(work(stream_.get())), "launching what is measured"));
    TRY(status_of(cudaEventRecord(end_.get(), stream_.get()), "marking an end"));
    TRY(status_of(cudaEventSynchronize(end_.get()), "running what is measured"));
    float ms = 0;
    TRY(status_of(cudaEventElapsedTime(&ms, start_.get(), end_.get()), "reading the clock"));
    return static_cast<double>(ms) / 1e3;
  }

  // `amount` over the seconds of each repetition, after one that is not counted.
  [[nodiscard]] Result<std::vector<double>> rates(double amount, int repetitions,
                                                  const Work& work) const {
    std::vector<double> rates;
    for (int i = -1; i < repetitions; ++i) {
      TRY_ASSIGN(const double elapsed, seconds(work));
      if (i >= 0) rates.push_back(amount / elapsed);
    }
    return rates;
  }

 private:
  Stream stream_;
  Event start_;
  Event end_;
};

Status measure_memory(std::vector<Bound>& bounds, const Timer& timer,
                      const BoundsOptions& options) {
  size_t available = 0;
  size_t total = 0;
  TRY(status_of(cudaMemGetInfo(&available, &total), "asking for the free memory"));
  int64_t bytes = options.buffer_bytes != 0
                      ? static_cast<int64_t>(options.buffer_bytes)
                      : std::min(kBufferBytes, static_cast<int64_t>(available / 3));
  bytes = std::max(bytes / kReadBlock * kReadBlock, kReadBlock);
  const auto amount = static_cast<double>(bytes);
  const std::string size = format_bytes_short(static_cast<uint64_t>(bytes));
  TRY_ASSIGN(const DeviceBuffer from, make_buffer(bytes));
  TRY_ASSIGN(const DeviceBuffer to, make_buffer(bytes));
  TRY_ASSIGN(const double filled, timer.seconds([&](cudaStream_t stream) {
    return fill_random(from.get(), bytes, stream);
  }));
  static_cast<void>(filled);
  const auto read = [&](cudaStream_t stream) {
    return launch_read(from.get(), bytes, static_cast<uint32_t*>(to.get()), stream);
  };
  TRY_ASSIGN(auto reads, timer.rates(amount, options.repetitions, read));
  bounds.push_back(bound_of("read", BoundKind::kRead, std::move(reads), size + ", 16-byte loads"));
  const auto copy = [&](cudaStream_t stream) -> int {
    return cudaMemcpyAsync(to.get(), from.get(), static_cast<size_t>(bytes),
                           cudaMemcpyDeviceToDevice, stream);
  };
  TRY_ASSIGN(auto copies, timer.rates(2 * amount, options.repetitions, copy));
  bounds.push_back(bound_of("copy", BoundKind::kCopy, std::move(copies),
                            size + ", cudaMemcpy, bytes read and written"));
  return {};
}

struct MultiplyRow {
  const char* name;
  Multiply what;
  int major;  // compute capability: at least 8, exactly 9
  const char* instruction;
};

constexpr MultiplyRow kMultiplies[] = {
    {"fma_f32", Multiply::kFmaF32, 8, "FFMA"},
    {"mma_i8", Multiply::kMmaI8, 8, "mma.m16n8k32, int32 sums"},
    {"mma_f16", Multiply::kMmaF16, 8, "mma.m16n8k16, float32 sums"},
    {"wgmma_f16", Multiply::kWgmmaF16, 9, "wgmma.m64n256k16, float32 sums"},
    {"wgmma_bf16", Multiply::kWgmmaBf16, 9, "wgmma.m64n256k16, float32 sums"},
};

Result<Bound> measure_multiply(const MultiplyRow& row, const Timer& timer, int multiprocessors,
                               const BoundsOptions& options) {
  TRY_ASSIGN(const DeviceBuffer sink, make_buffer(sizeof(float)));
  TRY(status_of(cudaMemset(sink.get(), 0, sizeof(float)), "clearing the sink"));
  MultiplyLaunch launch{multiprocessors, 256, static_cast<float*>(sink.get())};
  const auto work = [&](cudaStream_t stream) { return launch_multiply(row.what, launch, stream); };
  const double wanted = options.repetition_ms / 1e3;
  TRY_ASSIGN(double elapsed, timer.seconds(work));
  while (elapsed < wanted / 4 && launch.rounds < int64_t{1} << 40) {
    launch.rounds *= 4;
    TRY_ASSIGN(elapsed, timer.seconds(work));
  }
  const double scale = std::clamp(wanted / std::max(elapsed, 1e-9), 1.0 / 64, 64.0);
  launch.rounds =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(launch.rounds) * scale));
  const double operations =
      operations_a_round(row.what, multiprocessors) * static_cast<double>(launch.rounds);
  TRY_ASSIGN(auto rates, timer.rates(operations, options.repetitions, work));
  return bound_of(row.name, BoundKind::kMultiply, std::move(rates), row.instruction);
}

}  // namespace

Result<std::vector<Bound>> measure_bounds(const BoundsOptions& options) {
  RECKON_CHECK(options.repetitions >= 1);
  int device = 0;
  cudaDeviceProp properties{};
  TRY(status_of(cudaGetDevice(&device), "asking which device is used"));
  TRY(status_of(cudaGetDeviceProperties(&properties, device), "asking what the device is"));
  TRY_ASSIGN(const Timer timer, Timer::create());
  std::vector<Bound> bounds;
  TRY(measure_memory(bounds, timer, options));
  for (const MultiplyRow& row : kMultiplies) {
    if (row.major == 9 ? properties.major != 9 : properties.major < row.major) continue;
    TRY_ASSIGN(Bound bound, measure_multiply(row, timer, properties.multiProcessorCount, options));
    bounds.push_back(std::move(bound));
  }
  return bounds;
}

}  // namespace reckon::kernels::cuda
