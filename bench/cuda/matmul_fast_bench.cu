// Checks and times the fast matmuls by themselves, without the rest of the engine:
//
//   matmul_fast_bench check    against float64 on the CPU, odd shapes, poisoned outputs, run twice
//   matmul_fast_bench small    a few small shapes, for compute-sanitizer
//   matmul_fast_bench time     TFLOP/s beside cuBLASLt on bf16 weights, interleaved
//   matmul_fast_bench sweep    every cut of fast_tile
//
// Build (the *.hash.h headers are made by the project's build; any folder with stand-ins will do):
//   nvcc -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a -I src -I GENERATED \
//        bench/cuda/matmul_fast_bench.cu src/kernels/cuda/{matmul_fast_*,dequantise}.cu \
//        src/kernels/cuda/{blaslt,weight_tiles}.cpp -ldl
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/blaslt.h"
#include "kernels/cuda/dequantise.h"
#include "kernels/cuda/matmul_fast_cublas.h"
#include "kernels/cuda/matmul_fast_input.h"
#include "kernels/cuda/matmul_fast_plan.h"
#include "kernels/cuda/matmul_fast_tile.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/weight_tiles.h"
#include "tensor/blocks.h"

#define CUDA_OK(call)                                                             \
  do {                                                                            \
    const cudaError_t error_ = (call);                                            \
    if (error_ != cudaSuccess) {                                                  \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
      std::exit(1);                                                               \
    }                                                                             \
  } while (false)

namespace reckon::internal {
void check_failed(const char* file, int line, const char* condition) {
  std::printf("%s:%d: %s\n", file, line, condition);
  std::abort();
}
}  // namespace reckon::internal

// A stand-in for the session: what kernel.h declares, without plan, trace and threads.
namespace reckon::kernels {
struct KernelContext {
  cuda::Queue queue;
  void* scratch = nullptr;
  uint64_t declared = 0;
  int launches = 0;
};
void* scratch(KernelContext& context, uint64_t bytes) {
  if (bytes > context.declared) {
    std::printf("scratch of %llu bytes, declared %llu\n", (unsigned long long)bytes,
                (unsigned long long)context.declared);
    std::exit(1);
  }
  return context.scratch;
}
void* backend_queue(KernelContext& context) {
  return &context.queue;
}
void fail(KernelContext&, const char* message) {
  std::printf("FAILED: %s\n", message);
  std::exit(1);
}
void stamp(KernelContext&, const char*, const char*, const MatmulArgs&) {}
void stamp(KernelContext&, const char*, const char*, const MatmulGroupArgs&) {}
void stamp(KernelContext&, const char*, const char*, const MatmulSwigluArgs&) {}
namespace cuda {
void note_launch(KernelContext& context, const void*, dim3, dim3, uint32_t) {
  ++context.launches;
}
}  // namespace cuda
}  // namespace reckon::kernels

namespace {
using namespace reckon;
using namespace reckon::kernels;
using namespace reckon::kernels::cuda;

template <typename T>
class Device {
 public:
  explicit Device(size_t count) : count_(count) { CUDA_OK(cudaMalloc(&data_, count * sizeof(T))); }
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  [[nodiscard]] T* get() const { return data_; }
  [[nodiscard]] size_t size() const { return count_; }
  void write(const std::vector<T>& from) {
    CUDA_OK(cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  [[nodiscard]] std::vector<T> read(size_t count) const {
    std::vector<T> to(count);
    CUDA_OK(cudaMemcpy(to.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

struct Random {
  uint64_t state;
  uint64_t next() {
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }
  float normal() {  // near enough
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }
};

uint16_t half_bits(float value) {
  const __half half = __float2half_rn(value);
  uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}
uint16_t bf16_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

TileType tile_type(DType type) {
  return *fast_tile_type(type);
}
const char* type_name(DType type) {
  return type == DType::kP4    ? "p4"
         : type == DType::kP8  ? "p8"
         : type == DType::kF16 ? "f16"
                               : "bf16";
}

// Packed rows of random weights of about 0.05.
std::vector<uint8_t> random_rows(DType type, int64_t n, int64_t k, Random& random) {
  const int64_t bytes = packed_row_bytes(tile_type(type), k);
  std::vector<uint8_t> rows(static_cast<size_t>(n * bytes));
  for (int64_t j = 0; j < n; ++j) {
    uint8_t* row = rows.data() + j * bytes;
    if (type == DType::kP4 || type == DType::kP8) {
      const int64_t block = type == DType::kP4 ? 36 : 66, header = type == DType::kP4 ? 4 : 2;
      for (int64_t b = 0; b < tiles_of(k); ++b) {
        const float scale = (type == DType::kP4 ? 0.01f : 0.0008f) * (0.5f + random.uniform());
        const uint16_t bits[2] = {half_bits(scale), half_bits(scale * (-6 - 3 * random.uniform()))};
        std::memcpy(row + b * block, bits, static_cast<size_t>(header));
        for (int64_t i = header; i < block; ++i) {
          uint8_t code = static_cast<uint8_t>(random.next() >> 32);
          if (type == DType::kP8 && code == 128) code = 127;
          row[b * block + i] = code;
        }
      }
    } else {
      for (int64_t i = 0; i < k; ++i) {
        const float w = random.normal() * 0.05f;
        const uint16_t bits = type == DType::kF16 ? half_bits(w) : bf16_bits(w);
        std::memcpy(row + i * 2, &bits, 2);
      }
    }
  }
  return rows;
}

struct TestWeight {
  std::vector<float> values;  // [n, k]
  Device<uint8_t> tiles;
  TestWeight(DType type, int64_t n, int64_t k, Random& random)
      : values(static_cast<size_t>(n * k)),
        tiles(static_cast<size_t>(tile_bytes(tile_type(type), n, k))) {
    const std::vector<uint8_t> rows = random_rows(type, n, k, random);
    std::vector<uint8_t> packed(tiles.size());
    pack_tiles(tile_type(type), rows.data(), n, k, 0, strips_of(n), packed.data());
    for (int64_t j = 0; j < n; ++j) {
      unpack_tile_row(tile_type(type), packed.data(), k, j, values.data() + j * k);
    }
    tiles.write(packed);
  }
};

void in_parallel(int64_t count, const std::function<void(int64_t)>& body) {
  const auto workers = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (int64_t w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (int64_t i = w; i < count; i += workers) body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<double> product(const std::vector<float>& x, const std::vector<float>& w, int64_t rows,
                            int64_t n, int64_t k) {
  std::vector<double> out(static_cast<size_t>(rows * n));
  in_parallel(n, [&](int64_t j) {
    for (int64_t r = 0; r < rows; ++r) {
      const float *a = x.data() + r * k, *b = w.data() + j * k;
      double sums[4] = {};
      int64_t i = 0;
      for (; i + 4 <= k; i += 4) {
        for (int l = 0; l < 4; ++l) sums[l] += static_cast<double>(a[i + l]) * b[i + l];
      }
      for (; i < k; ++i) sums[0] += static_cast<double>(a[i]) * b[i];
      out[static_cast<size_t>(r * n + j)] = sums[0] + sums[1] + sums[2] + sums[3];
    }
  });
  return out;
}

// The largest ‖Δ‖ / ‖reference‖ of any row; infinity where a value is not finite.
double worst_row(const std::vector<float>& out, const std::vector<double>& want, int64_t rows,
                 int64_t n) {
  double worst = 0;
  for (int64_t r = 0; r < rows; ++r) {
    double difference = 0, norm = 0;
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(r * n + j);
      if (!std::isfinite(out[at])) return INFINITY;
      difference += (out[at] - want[at]) * (out[at] - want[at]);
      norm += want[at] * want[at];
    }
    worst = std::max(worst, std::sqrt(difference / std::max(norm, 1e-300)));
  }
  return worst;
}

struct Variants {
  const char* name;
  MatmulFn matmul;
  MatmulGroupFn group;
  MatmulSwigluFn swiglu;
  uint64_t (*scratch_bytes)(const OpCall&, const KernelParams&, int);
};
std::vector<Variants> variants(bool portable) {
  std::vector<Variants> all;
  all.push_back({kFastTile, matmul_fast_tile, matmul_group_fast_tile, matmul_swiglu_fast_tile,
                 fast_tile_scratch_bytes});
  if (blaslt_available()) {
    all.push_back({kFastCublas, matmul_fast_cublas, matmul_group_fast_cublas,
                   matmul_swiglu_fast_cublas, fast_cublas_scratch_bytes});
  }
  if (portable) {
    all.push_back({"fast_tile, mma", matmul_fast_tile_mma, matmul_group_fast_tile_mma,
                   matmul_swiglu_fast_tile_mma, fast_tile_scratch_bytes});
  }
  return all;
}

class Bench {
 public:
  Bench() : scratch_(size_t{768} << 20) {
    CUDA_OK(cudaStreamCreate(&context.queue.stream));
    context.scratch = scratch_.get();
    if (blaslt_available()) {
      auto library = BlasLt::create();
      if (!library) {
        std::printf("%s\n", library.error().message.c_str());
        std::exit(1);
      }
      library_ = std::move(*library);
      context.queue.matmul_library = library_.get();
    } else {
      std::printf("no cuBLASLt: %s\n", blaslt_missing_reason().c_str());
    }
  }

  void declare(const Variants& v, Op op, DType type, int64_t rows, int64_t n, int64_t k) {
    OpCall call;
    call.op = op;
    call.weight_type = type;
    call.rows = rows;
    call.n = n;
    call.k = k;
    context.declared = v.scratch_bytes(call, {}, 1);
    if (context.declared > scratch_.size()) {
      std::printf("scratch too small for the bench: %llu\n", (unsigned long long)context.declared);
      std::exit(1);
    }
  }

  // Poisons the first `count` outputs and some beyond, runs twice, and gives the result.
  std::vector<float> run(Device<float>& out, size_t count, const char* what,
                         const std::function<void()>& call) {
    std::vector<float> results[2];
    for (std::vector<float>& result : results) {
      CUDA_OK(cudaMemset(out.get(), 0xff, out.size() * 4));
      CUDA_OK(cudaMemset(scratch_.get(), 0xff, context.declared));
      call();
      CUDA_OK(cudaStreamSynchronize(context.queue.stream));
      result = out.read(out.size());
      for (size_t i = count; i < result.size(); ++i) {
        if (!std::isnan(result[i])) {
          std::printf("%s: wrote beyond the output at %zu\n", what, i);
          ++failures;
          break;
        }
      }
      result.resize(count);
    }
    if (std::memcmp(results[0].data(), results[1].data(), count * 4) != 0) {
      std::printf("%s: two runs differ\n", what);
      ++failures;
    }
    return results[0];
  }

  void verdict(const char* what, double error, double bar) {
    worst = std::max(worst, error / bar);
    if (!(error <= bar)) {
      std::printf("%s: error %.2e over %.0e\n", what, error, bar);
      ++failures;
    }
    ++checks;
  }

  KernelContext context;
  int failures = 0, checks = 0;
  double worst = 0;

 private:
  Device<uint8_t> scratch_;
  std::unique_ptr<BlasLt> library_;
};

std::vector<float> random_rows_of_x(int64_t rows, int64_t k, Random& random) {
  std::vector<float> x(static_cast<size_t>(rows * k));
  for (int64_t r = 0; r < rows; ++r) {
    // Some rows beyond half precision's range at either end.
    const float scale = r % 5 == 3 ? 1e6f : r % 5 == 4 ? 1e-9f : 1.0f;
    for (int64_t i = 0; i < k; ++i) x[static_cast<size_t>(r * k + i)] = random.normal() * scale;
  }
  return x;
}

void check_shape(Bench& bench, const Variants& v, DType type, const TestWeight& first,
                 const TestWeight& second, int64_t n, int64_t k, int64_t rows) {
  Random random{static_cast<uint64_t>(rows * 1000003 + n * 101 + k)};
  const double bar = type == DType::kBF16 ? 5e-3 : 1e-3;  // under the class's 2e-2 and 5e-3
  const std::vector<float> x = random_rows_of_x(rows, k, random);
  const std::vector<double> want = product(x, first.values, rows, n, k);
  Device<float> device_x(x.size());
  device_x.write(x);
  const auto count = static_cast<size_t>(rows * n);
  char what[128];
  const auto name = [&](const char* op) {
    std::snprintf(what, sizeof what, "%s %s %s %lldx%lldx%lld", v.name, op, type_name(type),
                  (long long)rows, (long long)n, (long long)k);
    return what;
  };
  {
    Device<float> out(count + 64);
    MatmulArgs args;
    args.x = device_x.get();
    args.weight = first.tiles.get();
    args.weight_type = type;
    args.out = out.get();
    args.rows = rows, args.n = n, args.k = k;
    bench.declare(v, Op::kMatmul, type, rows, n, k);
    const auto got = bench.run(out, count, name("matmul"), [&] { v.matmul(args, bench.context); });
    bench.verdict(what, worst_row(got, want, rows, n), bar);
  }
  const std::vector<double> other = product(x, second.values, rows, n, k);
  {
    Device<float> out(2 * count + 64);
    MatmulGroupArgs args;
    args.x = device_x.get();
    args.parts[0] = {first.tiles.get(), out.get(), n};
    args.parts[1] = {second.tiles.get(), out.get() + count, n};
    args.count = 2;
    args.weight_type = type;
    args.rows = rows, args.k = k;
    bench.declare(v, Op::kMatmulGroup, type, rows, 2 * n, k);
    auto got = bench.run(out, 2 * count, name("group"), [&] { v.group(args, bench.context); });
    const std::vector<float> tail(got.begin() + static_cast<int64_t>(count), got.end());
    bench.verdict(what, worst_row(got, want, rows, n), bar);
    bench.verdict(what, worst_row(tail, other, rows, n), bar);
  }
  {
    // The sigmoid makes little of a large gate's error and much of nothing: rows of ordinary size.
    std::vector<float> plain = x;
    for (int64_t r = 0; r < rows; ++r) {
      const float scale = r % 5 == 3 ? 1e-6f : r % 5 == 4 ? 1e9f : 1.0f;
      for (int64_t i = 0; i < k; ++i) plain[static_cast<size_t>(r * k + i)] *= scale * 0.5f;
    }
    device_x.write(plain);
    std::vector<double> gate = product(plain, first.values, rows, n, k);
    const std::vector<double> up = product(plain, second.values, rows, n, k);
    for (size_t i = 0; i < count; ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    Device<float> out(count + 64);
    MatmulSwigluArgs args;
    args.x = device_x.get();
    args.gate = first.tiles.get();
    args.up = second.tiles.get();
    args.weight_type = type;
    args.out = out.get();
    args.rows = rows, args.n = n, args.k = k;
    bench.declare(v, Op::kMatmulSwiglu, type, rows, n, k);
    const auto got = bench.run(out, count, name("swiglu"), [&] { v.swiglu(args, bench.context); });
    bench.verdict(what, worst_row(got, gate, rows, n), 2 * bar);
  }
}

int check(bool small) {
  Bench bench;
  struct Shape {
    int64_t n, k;
  };
  std::vector<Shape> shapes{{251, 2880}, {48, 251}, {2880, 48}, {251, 10944}, {1030, 1000}};
  std::vector<int64_t> rows{33, 100, 511};
  for (int64_t r = 1; r <= 17; ++r) rows.push_back(r);
  if (small) {
    shapes = {{251, 320}, {48, 251}};
    rows = {1, 17, 70, 130};
  }
  for (const DType type : {DType::kP4, DType::kP8, DType::kF16, DType::kBF16}) {
    for (const Shape& shape : shapes) {
      Random random{static_cast<uint64_t>(shape.n * 7 + shape.k)};
      const TestWeight first(type, shape.n, shape.k, random),
          second(type, shape.n, shape.k, random);
      for (const int64_t r : rows) {
        for (const Variants& v : variants(true)) {
          check_shape(bench, v, type, first, second, shape.n, shape.k, r);
        }
      }
    }
  }
  std::printf("%d checks, %d failures, worst error %.3f of the bar\n", bench.checks, bench.failures,
              bench.worst);
  return bench.failures == 0 ? 0 : 1;
}

// ---- timing ----

__device__ uint32_t mixed(uint64_t z) {
  z = (z + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>(z >> 16);
}
__global__ void fill_p4(uint32_t* words, uint64_t count) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * blockDim.x) {
    const uint32_t bits = mixed(i);
    if (i % 144 < 128) {
      words[i] = bits;
    } else {
      const float scale = 0.01f * (0.5f + static_cast<float>(bits >> 8) * 0x1p-24f);
      const __half2 pair = __floats2half2_rn(scale, -7.5f * scale);
      words[i] = *reinterpret_cast<const uint32_t*>(&pair);
    }
  }
}
__device__ float normal_at(uint64_t i) {
  const float u = (static_cast<float>(mixed(2 * i) >> 8) + 1) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cospif(static_cast<float>(mixed(2 * i + 1) >> 8) * 0x1p-23f);
}
__global__ void fill_bf16(__nv_bfloat16* out, uint64_t count, float scale) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * blockDim.x) {
    out[i] = __float2bfloat16(normal_at(i) * scale);
  }
}
__global__ void fill_f32(float* out, uint64_t count) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * blockDim.x) {
    out[i] = normal_at(i);
  }
}

// One thing to time: `calls` of it, captured, so that the host's launches are not measured.
class Replay {
 public:
  Replay(Bench& bench, int calls, const std::function<void(int)>& call)
      : stream_(bench.context.queue.stream), calls_(calls) {
    call(0);  // heuristics, function attributes, module load
    CUDA_OK(cudaStreamSynchronize(stream_));
    CUDA_OK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < calls; ++i) call(i);
    CUDA_OK(cudaStreamEndCapture(stream_, &graph_));
    CUDA_OK(cudaGraphInstantiate(&exec_, graph_, 0));
    CUDA_OK(cudaEventCreate(&start_));
    CUDA_OK(cudaEventCreate(&stop_));
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
    CUDA_OK(cudaEventRecord(start_, stream_));
    CUDA_OK(cudaGraphLaunch(exec_, stream_));
    CUDA_OK(cudaEventRecord(stop_, stream_));
    CUDA_OK(cudaEventSynchronize(stop_));
    float ms = 0;
    CUDA_OK(cudaEventElapsedTime(&ms, start_, stop_));
    times_.push_back(ms * 1000 / static_cast<float>(calls_));
  }
  // Microseconds a call.
  [[nodiscard]] double median() const {
    std::vector<float> sorted(times_.begin() + 2, times_.end());
    std::sort(sorted.begin(), sorted.end());
    return static_cast<double>(sorted[sorted.size() / 2]);
  }

 private:
  cudaStream_t stream_;
  int calls_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  std::vector<float> times_;
};

constexpr int kCalls = 8;
constexpr int kRepeats = 9;  // two of them warm up

struct TimedShape {
  const char* what;
  Op op;
  int64_t n, k;
};

int time_all(bool quick) {
  Bench bench;
  const std::vector<TimedShape> shapes{
      {"qkv", Op::kMatmulGroup, 6144, 4096},       {"o", Op::kMatmul, 4096, 4096},
      {"gate_up", Op::kMatmulSwiglu, 14336, 4096}, {"down", Op::kMatmul, 4096, 14336},
      {"6144x4096", Op::kMatmul, 6144, 4096},      {"14336x4096", Op::kMatmul, 14336, 4096},
      {"34816x5120", Op::kMatmul, 34816, 5120},    {"5120x17408", Op::kMatmul, 5120, 17408},
      {"16384x5120", Op::kMatmul, 16384, 5120},    {"5120x6144", Op::kMatmul, 5120, 6144}};
  std::vector<int64_t> row_counts{17, 32, 64, 128, 256, 512, 1024, 2048};
  if (quick) row_counts = {32, 128, 512, 2048};
  // Copies of the weights, so that the cache serves none of them from one call to the next.
  const size_t pool = size_t{1} << 30;
  Device<uint8_t> tiles(pool);
  Device<__nv_bfloat16> plain(pool);
  Device<float> x(size_t{2048} * 17408), out(size_t{2048} * 34816), other(size_t{2048} * 14336);
  Device<__nv_bfloat16> plain_x(size_t{2048} * 17408);
  fill_p4<<<2048, 256>>>(reinterpret_cast<uint32_t*>(tiles.get()), pool / 4);
  fill_bf16<<<2048, 256>>>(plain.get(), pool, 0.05f);
  fill_bf16<<<2048, 256>>>(plain_x.get(), plain_x.size(), 1.0f);
  fill_f32<<<2048, 256>>>(x.get(), x.size());
  CUDA_OK(cudaDeviceSynchronize());
  std::printf("%-11s %5s | %-34s | %-30s | %-18s | %s\n", "", "rows",
              "fast_tile us TFLOP/s of cublas", "fast_cublas us TFLOP/s of", "cublas us TFLOP/s",
              "input us, dequantise us");
  for (const TimedShape& shape : shapes) {
    const int64_t weights = shape.op == Op::kMatmulSwiglu ? 2 : 1;
    const int64_t bytes = tile_bytes(TileType::kP4, shape.n, shape.k);
    const int64_t copies = std::max<int64_t>(
        1, std::min<int64_t>(kCalls, static_cast<int64_t>(pool) / (bytes * weights)));
    const int64_t plain_copies = std::max<int64_t>(
        1, std::min<int64_t>(kCalls, static_cast<int64_t>(pool) / (shape.n * shape.k * weights)));
    for (const int64_t rows : row_counts) {
      std::vector<std::unique_ptr<Replay>> replays;
      for (const Variants& v : variants(false)) {
        bench.declare(v, shape.op, DType::kP4, rows, shape.n, shape.k);
        replays.push_back(std::make_unique<Replay>(bench, kCalls, [&](int i) {
          const uint8_t* weight = tiles.get() + i % copies * bytes * weights;
          if (shape.op == Op::kMatmul) {
            MatmulArgs args;
            args.x = x.get(), args.weight = weight, args.weight_type = DType::kP4;
            args.out = out.get(), args.rows = rows, args.n = shape.n, args.k = shape.k;
            v.matmul(args, bench.context);
          } else if (shape.op == Op::kMatmulGroup) {
            MatmulGroupArgs args;
            args.x = x.get(), args.weight_type = DType::kP4, args.rows = rows, args.k = shape.k;
            args.count = 3;
            const int64_t sizes[3] = {shape.n - 2048, 1024, 1024};
            int64_t row = 0;
            for (int part = 0; part < 3; ++part) {
              args.parts[part] = {weight + tile_bytes(TileType::kP4, row, shape.k),
                                  out.get() + row * rows, sizes[part]};
              row += sizes[part];
            }
            v.group(args, bench.context);
          } else {
            MatmulSwigluArgs args;
            args.x = x.get(), args.gate = weight, args.up = weight + bytes;
            args.weight_type = DType::kP4, args.out = out.get();
            args.rows = rows, args.n = shape.n, args.k = shape.k;
            v.swiglu(args, bench.context);
          }
        }));
      }
      const size_t tile_at = 0, cublas_at = 1;
      const bool library = replays.size() > 1;
      size_t yardstick = 0;
      if (library) {
        yardstick = replays.size();
        auto* blas = static_cast<BlasLt*>(bench.context.queue.matmul_library);
        replays.push_back(std::make_unique<Replay>(bench, kCalls, [&](int i) {
          for (int64_t w = 0; w < weights; ++w) {
            BlasLtMatmul p;
            p.type = BlasLtType::kBf16;
            p.x = plain_x.get();
            p.weight = plain.get() + (i % plain_copies * weights + w) * shape.n * shape.k;
            p.out = w == 0 ? out.get() : other.get();
            p.rows = rows, p.n = shape.n, p.k = p.x_stride = p.weight_stride = shape.k;
            p.out_stride = shape.n;
            const char* error = blas->matmul(p, bench.context.scratch, kBlasLtWorkspaceBytes,
                                             bench.context.queue.stream);
            if (error != nullptr) fail(bench.context, error);
          }
        }));
      }
      const size_t input_at = replays.size();
      replays.push_back(std::make_unique<Replay>(bench, kCalls, [&](int) {
        const InputLaunch launch = convert_input(x.get(), rows, shape.k, false, InputOrder::kTiles,
                                                 (rows + 255) / 256 * 256, bench.context.scratch,
                                                 other.get(), bench.context.queue.stream);
        CUDA_OK(launch.error);
      }));
      const size_t dequantise_at = replays.size();
      const int64_t dequantised = std::min<int64_t>(strips_of(shape.n), 1024);
      replays.push_back(std::make_unique<Replay>(bench, kCalls, [&](int i) {
        const DequantiseLaunch launch =
            dequantise_strips(TileType::kP4, tiles.get() + i % copies * bytes * weights, shape.k, 0,
                              dequantised, bench.context.scratch, bench.context.queue.stream);
        CUDA_OK(launch.error);
      }));
      for (int repeat = 0; repeat < kRepeats; ++repeat) {
        for (auto& replay : replays) replay->run();
      }
      const double flop = 2.0 * static_cast<double>(rows * shape.n * weights * shape.k);
      const auto rate = [&](double us) { return flop / us * 1e-6; };
      const double tile = replays[tile_at]->median();
      const double base = library ? replays[yardstick]->median() : 0;
      const double cublas = library ? replays[cublas_at]->median() : 0;
      std::printf(
          "%-11s %5lld | %9.1f %6.0f %5.2f | %9.1f %6.0f %5.2f | %9.1f %6.0f | %7.1f %7.1f (%.2f "
          "TB/s)\n",
          shape.what, (long long)rows, tile, rate(tile), base / tile, cublas,
          library ? rate(cublas) : 0, library ? base / cublas : 0, base, library ? rate(base) : 0,
          replays[input_at]->median(),
          replays[dequantise_at]->median() * static_cast<double>(strips_of(shape.n)) /
              static_cast<double>(dequantised) * static_cast<double>(weights),
          static_cast<double>(dequantised * tiles_of(shape.k)) * (576 + 2048) /
              replays[dequantise_at]->median() * 1e-6);
    }
  }
  return 0;
}

// Every cut of fast_tile, beside what the rule picks (in brackets), for its constants.
int sweep() {
  Bench bench;
  const size_t pool = size_t{1} << 30;
  Device<uint8_t> tiles(pool);
  Device<float> x(size_t{2048} * 17408), out(size_t{2048} * 34816);
  fill_p4<<<2048, 256>>>(reinterpret_cast<uint32_t*>(tiles.get()), pool / 4);
  fill_f32<<<2048, 256>>>(x.get(), x.size());
  CUDA_OK(cudaDeviceSynchronize());
  const int64_t shapes[][2] = {{4096, 4096},  {6144, 4096},  {14336, 4096}, {4096, 14336},
                               {34816, 5120}, {5120, 17408}, {5120, 6144}};
  for (const auto& shape : shapes) {
    const int64_t n = shape[0], k = shape[1], bytes = tile_bytes(TileType::kP4, n, k);
    const int64_t copies = std::min<int64_t>(kCalls, static_cast<int64_t>(pool) / bytes);
    for (const int64_t rows : {17, 32, 64, 128, 256, 512, 1024, 2048}) {
      bench.declare(variants(false)[0], Op::kMatmul, DType::kP4, rows, n, k);
      std::vector<TileCut> cuts;
      std::vector<std::unique_ptr<Replay>> replays;
      for (const int slices : {1, 2}) {
        for (const int tokens : {16, 32, 64, 128, 160, 192, 256}) {
          if ((tokens > 16 && tokens / 2 >= rows) || (tokens > 128 && slices == 2)) continue;
          if (tokens * 4 < std::min<int64_t>(rows, 256)) continue;
          for (const int split : {1, 2, 4, 8}) {
            if (split > 1 && (tokens > 128 || n / (128 * slices) * (rows / tokens) > 300)) continue;
            const TileCut cut{slices, tokens, split};
            cuts.push_back(cut);
            replays.push_back(std::make_unique<Replay>(bench, kCalls, [&, cut](int i) {
              MatmulArgs args;
              args.x = x.get(), args.weight = tiles.get() + i % copies * bytes;
              args.weight_type = DType::kP4, args.out = out.get();
              args.rows = rows, args.n = n, args.k = k;
              matmul_fast_tile_cut(args, cut, bench.context);
            }));
          }
        }
      }
      for (int repeat = 0; repeat < 7; ++repeat) {
        for (auto& replay : replays) replay->run();
      }
      std::vector<size_t> order(cuts.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::sort(order.begin(), order.end(),
                [&](size_t a, size_t b) { return replays[a]->median() < replays[b]->median(); });
      const TileCut rule = tile_cut(TileShape::kAuto, false, rows, n, k, 132);
      std::printf("%lldx%lldx%lld:", (long long)rows, (long long)n, (long long)k);
      for (const size_t i : order) {
        const bool picked = cuts[i] == rule;
        std::printf(" %s%dx%d/%d %.1f%s", picked ? "[" : "", cuts[i].slices, cuts[i].tokens,
                    cuts[i].split, replays[i]->median(), picked ? "]" : "");
      }
      std::printf("\n");
    }
  }
  return 0;
}

// One cut, for a profiler: rows n k slices tokens split.
int one(char** argv) {
  Bench bench;
  const int64_t rows = std::atoll(argv[0]), n = std::atoll(argv[1]), k = std::atoll(argv[2]);
  const TileCut cut{std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5])};
  const int64_t bytes = tile_bytes(TileType::kP4, n, k);
  Device<uint8_t> tiles(static_cast<size_t>(bytes));
  Device<float> x(static_cast<size_t>(rows * k)), out(static_cast<size_t>(rows * n));
  fill_p4<<<2048, 256>>>(reinterpret_cast<uint32_t*>(tiles.get()),
                         static_cast<uint64_t>(bytes / 4));
  fill_f32<<<2048, 256>>>(x.get(), x.size());
  bench.declare(variants(false)[0], Op::kMatmul, DType::kP4, rows, n, k);
  MatmulArgs args;
  args.x = x.get(), args.weight = tiles.get(), args.weight_type = DType::kP4, args.out = out.get();
  args.rows = rows, args.n = n, args.k = k;
  for (int i = 0; i < 3; ++i) matmul_fast_tile_cut(args, cut, bench.context);
  CUDA_OK(cudaDeviceSynchronize());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  cudaDeviceProp properties;
  CUDA_OK(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %d multiprocessors\n", properties.name, properties.multiProcessorCount);
  if (mode == "check") return check(false);
  if (mode == "small") return check(true);
  if (mode == "time") return time_all(false);
  if (mode == "quick") return time_all(true);
  if (mode == "sweep") return sweep();
  if (mode == "one" && argc == 8) return one(argv + 2);
  std::printf(
      "matmul_fast_bench check | small | time | quick | sweep | one ROWS N K SLICES TOKENS "
      "SPLIT\n");
  return 2;
}
