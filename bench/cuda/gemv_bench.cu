// Standalone check and micro-benchmark of the gemv kernels (src/kernels/cuda/gemv.h).
//
//   gemv_bench check          correctness and bit-identity
//   gemv_bench check-small    the same on few small shapes, for compute-sanitizer
//   gemv_bench time           read bandwidth, single shapes, llama-8b layers as one graph
//   gemv_bench sweep [LOG [all]]  the default geometry and every other on the single shapes
//   gemv_bench                check, then time
//
// Times are the median of graph replays, each of many launches over copies of the weights that
// together exceed 500 MB, so that no launch finds its weights in L2.
#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gemv_bench.h"
#include "kernels/cuda/gemv_geometry.h"

namespace reckon::bench {
namespace {

using namespace kernels::cuda;  // NOLINT: a program's own file

constexpr int64_t kColdBytes = 600'000'000;

// Random tiles: codes are anything, scales and plain weights small and finite.
__global__ void fill_tiles(uint32_t* words, int64_t count, int tile_words, int code_words,
                           TileType type, uint32_t seed) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    uint32_t h = static_cast<uint32_t>(i) * 2654435761u ^ seed;
    h = (h ^ h >> 15) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    h ^= h >> 16;
    const bool code = i % tile_words < code_words;
    if (!code && type == TileType::kP4) {
      const uint32_t scale = 0x1800u | (h & 0x3ff);  // 0.002 ... 0.004
      h = scale | (0xa000u | (h & 0x3ff)) << 16;     // times -4 ... -8: about zero mean
    } else if (!code) {
      h = (h & 0x03ff03ffu) | 0x08000800u;
    } else if (type == TileType::kF16) {
      h = (h & 0x83ff83ffu) | 0x24002400u;
    } else if (type == TileType::kBf16) {
      h = (h & 0x807f807fu) | 0x3c803c80u;
    }
    words[i] = h;
  }
}

__global__ void fill_floats(float* x, int64_t count, uint32_t seed) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    uint32_t h = static_cast<uint32_t>(i) * 2246822519u ^ seed;
    h = (h ^ h >> 15) * 0x85ebca6bu;
    h ^= h >> 13;
    x[i] = static_cast<float>(h & 0xffff) / 32768.0f - 1.0f;
  }
}

// The ceiling: every byte read once, 16 at a time, 8 loads in flight a thread.
__global__ void __launch_bounds__(512) read_only(const uint4* from, int64_t count, uint32_t* sink) {
  uint32_t any = 0;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  for (; i + 7 * step < count; i += 8 * step) {
    uint4 v[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) v[u] = __ldcs(from + i + u * step);
#pragma unroll
    for (int u = 0; u < 8; ++u) any |= v[u].x ^ v[u].y ^ v[u].z ^ v[u].w;
  }
  if (any == 0x12345678u) *sink = any;
}

DeviceBytes random_tiles(TileType type, int64_t n, int64_t k, int64_t copies) {
  const int64_t bytes = tile_bytes(type, n, k) * copies;
  DeviceBytes tiles(bytes);
  const int codes = type == TileType::kP4 ? 128 : type == TileType::kP8 ? 256 : 1 << 20;
  fill_tiles<<<2048, 256>>>(tiles.as<uint32_t>(), bytes / 4, static_cast<int>(tile_bytes(type) / 4),
                            codes, type, static_cast<uint32_t>(n * 31 + k));
  REQUIRE_CUDA(cudaGetLastError());
  return tiles;
}

DeviceBytes random_floats(int64_t count) {
  DeviceBytes x(count * 4);
  fill_floats<<<1024, 256>>>(x.as<float>(), count, 99);
  REQUIRE_CUDA(cudaGetLastError());
  return x;
}

class Timer {
 public:
  Timer() {
    REQUIRE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    REQUIRE_CUDA(cudaEventCreate(&start_));
    REQUIRE_CUDA(cudaEventCreate(&stop_));
  }
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
    cudaStreamDestroy(stream_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Median microseconds of one replay of what `record` launches.
  double replay_us(int replays, const std::function<void(cudaStream_t)>& record) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    REQUIRE_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    record(stream_);
    REQUIRE_CUDA(cudaStreamEndCapture(stream_, &graph));
    REQUIRE_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    std::vector<float> times;
    for (int i = 0; i < replays + 2; ++i) {
      REQUIRE_CUDA(cudaEventRecord(start_, stream_));
      REQUIRE_CUDA(cudaGraphLaunch(executable, stream_));
      REQUIRE_CUDA(cudaEventRecord(stop_, stream_));
      REQUIRE_CUDA(cudaEventSynchronize(stop_));
      float ms = 0;
      REQUIRE_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
      if (i >= 2) times.push_back(ms * 1000);
    }
    REQUIRE_CUDA(cudaGraphExecDestroy(executable));
    REQUIRE_CUDA(cudaGraphDestroy(graph));
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return double{times[times.size() / 2]};
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

double read_bandwidth(Timer& timer) {
  constexpr int64_t kBytes = int64_t{4} << 30;
  const DeviceBytes data = random_floats(kBytes / 4);
  const DeviceBytes sink(16);
  double best_us = 1e30;
  for (const int blocks : {264, 528, 1056, 2112}) {
    best_us = std::min(best_us, timer.replay_us(7, [&](cudaStream_t stream) {
      read_only<<<blocks, 512, 0, stream>>>(data.as<uint4>(), kBytes / 16, sink.as<uint32_t>());
    }));
  }
  return static_cast<double>(kBytes) / best_us * 1e-6;
}

// A matmul (or a SwiGLU pair) with enough copies of its weights to stay cold.
struct Shape {
  TileType type;
  int64_t n, k;
  GemvForm form = GemvForm::kStore;

  int64_t weights() const { return form == GemvForm::kSwiglu ? 2 : 1; }
  int64_t bytes() const { return tile_bytes(type, n, k) * weights(); }
  int64_t copies() const { return std::min<int64_t>(kColdBytes / bytes() + 1, 64); }
};

struct ShapeData {
  explicit ShapeData(const Shape& s)
      : shape(s),
        tiles(random_tiles(s.type, s.n * s.weights(), s.k, s.copies())),
        x(random_floats(16 * s.k)),
        out(16 * s.n * 4) {}

  GemvLaunch launch(const GemvDevice& device, int64_t copy, int64_t rows, GemvOrder order,
                    const GemvTuning* tuning, cudaStream_t stream) const {
    GemvParams p;
    p.type = shape.type;
    p.x = x.as<float>();
    p.rows = rows;
    p.k = p.x_stride = shape.k;
    p.form = shape.form;
    p.order = order;
    p.tuning = tuning;
    p.weight_count = static_cast<int>(shape.weights());
    const int64_t bytes = tile_bytes(shape.type, shape.n, shape.k);
    for (int64_t i = 0; i < shape.weights(); ++i) {
      p.weights[i] = {tiles.as<uint8_t>() + (copy * shape.weights() + i) * bytes, out.as<float>(),
                      shape.n, shape.n};
    }
    return gemv_mma(device, p, stream);
  }

  double time_us(Timer& timer, const GemvDevice& device, int64_t rows, GemvOrder order,
                 const GemvTuning* tuning, int launches, int replays) const {
    const double total = timer.replay_us(replays, [&](cudaStream_t stream) {
      for (int i = 0; i < launches; ++i) {
        REQUIRE_CUDA(launch(device, i % shape.copies(), rows, order, tuning, stream).error);
      }
    });
    return total / launches;
  }

  Shape shape;
  DeviceBytes tiles, x, out;
};

const char* name_of(TileType type) {
  constexpr const char* kNames[] = {"p4", "p8", "f16", "bf16", "f32"};
  return kNames[static_cast<int>(type)];
}

constexpr Shape kShapes[] = {{TileType::kP4, 34816, 5120},
                             {TileType::kP4, 5120, 17408},
                             {TileType::kP4, 16384, 5120},
                             {TileType::kP4, 5120, 6144}};
constexpr Shape kLlamaShapes[] = {{TileType::kP4, 6144, 4096},
                                  {TileType::kP4, 4096, 4096},
                                  {TileType::kP4, 14336, 4096, GemvForm::kSwiglu},
                                  {TileType::kP4, 4096, 14336},
                                  {TileType::kP4, 128256, 4096}};

void time_shape(Timer& timer, const GemvDevice& device, const Shape& shape) {
  const ShapeData data(shape);
  for (const GemvOrder order : {GemvOrder::kSerial, GemvOrder::kOverlap}) {
    std::printf("%-4s %6ld x %-6ld%s %s", name_of(shape.type), static_cast<long>(shape.n),
                static_cast<long>(shape.k), shape.form == GemvForm::kSwiglu ? " pair" : "     ",
                order == GemvOrder::kSerial ? "serial " : "overlap");
    double one = 0;
    for (const int64_t rows : {1, 4, 8, 16}) {
      const double us = data.time_us(timer, device, rows, order, nullptr, 64, 9);
      if (rows == 1) {
        one = us;
        std::printf(" | M=1 %7.2f us %5.2f TB/s", us,
                    static_cast<double>(shape.bytes()) / us * 1e-6);
      } else {
        std::printf(" | M=%ld %7.2f us %4.2fx", static_cast<long>(rows), us, us / one);
      }
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

// 32 layers of llama-8b's matmuls, each reading what the one before wrote, in one graph.
void time_layers(Timer& timer, const GemvDevice& device, TileType type, double bandwidth) {
  constexpr int kLayers = 32;
  constexpr int64_t kHidden = 4096, kQkv[] = {4096, 1024, 1024}, kInner = 14336;
  const int64_t qkv_bytes = tile_bytes(type, 6144, kHidden);
  const int64_t o_bytes = tile_bytes(type, kHidden, kHidden);
  const int64_t up_bytes = tile_bytes(type, kInner, kHidden);
  const int64_t down_bytes = tile_bytes(type, kHidden, kInner);
  const int64_t layer_bytes = qkv_bytes + o_bytes + 2 * up_bytes + down_bytes;
  const DeviceBytes tiles =
      random_tiles(type, 6144 + kHidden + 2 * kInner + kInner, kHidden, kLayers);
  const DeviceBytes x = random_floats(16 * kHidden), qkv(16 * 6144 * 4), o(16 * kHidden * 4),
                    inner(16 * kInner * 4);
  for (const int64_t rows : {1, 4, 8, 16}) {
    for (const GemvOrder order : {GemvOrder::kSerial, GemvOrder::kOverlap}) {
      const double us = timer.replay_us(9, [&](cudaStream_t stream) {
        for (int layer = 0; layer < kLayers; ++layer) {
          const uint8_t* at = tiles.as<uint8_t>() + layer * layer_bytes;
          GemvParams p;
          p.type = type;
          p.rows = rows;
          p.order = order;
          p.x = x.as<float>();
          p.k = p.x_stride = kHidden;
          p.weight_count = 3;
          float* out = qkv.as<float>();
          for (int i = 0; i < 3; ++i) {
            p.weights[i] = {at, out, kQkv[i], kQkv[i]};
            at += tile_bytes(type, kQkv[i], kHidden);
            out += rows * kQkv[i];
          }
          REQUIRE_CUDA(gemv_mma(device, p, stream).error);
          p.weight_count = 1;
          p.x = qkv.as<float>();
          p.weights[0] = {at, o.as<float>(), kHidden, kHidden};
          at += o_bytes;
          REQUIRE_CUDA(gemv_mma(device, p, stream).error);
          p.weight_count = 2;
          p.form = GemvForm::kSwiglu;
          p.x = o.as<float>();
          p.weights[0] = {at, inner.as<float>(), kInner, kInner};
          p.weights[1] = {at + up_bytes, nullptr, kInner, 0};
          at += 2 * up_bytes;
          REQUIRE_CUDA(gemv_mma(device, p, stream).error);
          p.weight_count = 1;
          p.form = GemvForm::kStore;
          p.x = inner.as<float>();
          p.k = p.x_stride = kInner;
          p.weights[0] = {at, x.as<float>(), kHidden, kHidden};
          REQUIRE_CUDA(gemv_mma(device, p, stream).error);
        }
      });
      const double floor_us = static_cast<double>(layer_bytes * kLayers) / bandwidth * 1e-6;
      std::printf(
          "%-4s llama-8b 32 layers, %2ld rows, %s: %7.1f us, floor %7.1f us, %4.2fx, "
          "%4.2f TB/s\n",
          name_of(type), static_cast<long>(rows),
          order == GemvOrder::kSerial ? "serial " : "overlap", us, floor_us, us / floor_us,
          static_cast<double>(layer_bytes * kLayers) / us * 1e-6);
    }
  }
  std::fflush(stdout);
}

struct Result {
  GemvTuning tuning;
  int blocks;  // of the grid
  double us;
};

// Every geometry worth trying that fits unchanged.
std::vector<GemvTuning> candidates(const GemvDevice& device, const Shape& shape, int64_t rows) {
  constexpr int64_t kLeastBytes = 1600, kMostBytes = 8500;  // of a copy
  std::vector<GemvTuning> all;
  for (const int cluster : {1, 2, 4, 8}) {
    for (const int blocks : {1, 2}) {
      for (const int tiles : {1, 2, 3, 4, 5, 6, 7}) {
        const int64_t bytes = tile_bytes(shape.type) * tiles;
        if (bytes < kLeastBytes || bytes > kMostBytes) continue;
        for (const int slots : {2, 3, 4, 6}) {
          const GemvTuning wanted{cluster, blocks, tiles, slots};
          GemvTuning got =
              gemv_geometry(device, shape.type, rows, shape.k, strips_of(shape.n), wanted).tuning;
          if (got.cluster != cluster || got.blocks_per_sm != blocks || got.stage_tiles != tiles ||
              got.slots != slots) {
            continue;
          }
          for (const int early : std::set<int>{1, 2, slots - 1, slots}) {
            got.early_slots = early;
            all.push_back(got);
          }
        }
      }
    }
  }
  return all;
}

void print_result(const char* what, const Result& r, int64_t bytes) {
  std::printf("  %s%.2f us %.2f TB/s c%d b%d t%d s%d e%d (%d)", what, r.us,
              static_cast<double>(bytes) / r.us * 1e-6, r.tuning.cluster, r.tuning.blocks_per_sm,
              r.tuning.stage_tiles, r.tuning.slots, r.tuning.early_slots, r.blocks);
}

// Overlapped times of every candidate and, first, of the default geometry.
void sweep_shape(Timer& timer, const GemvDevice& device, const Shape& shape, FILE* log) {
  const ShapeData data(shape);
  const int64_t units = strips_of(shape.n);
  for (const int64_t rows : {1, 4, 8, 16}) {
    const auto measure = [&](const GemvTuning& wanted) {
      const GemvGeometry geometry = gemv_geometry(device, shape.type, rows, shape.k, units, wanted);
      return Result{geometry.tuning, geometry.blocks,
                    data.time_us(timer, device, rows, GemvOrder::kOverlap, &wanted, 40, 3)};
    };
    std::printf("%s %ldx%ld%s M=%-2ld", name_of(shape.type), static_cast<long>(shape.n),
                static_cast<long>(shape.k), shape.form == GemvForm::kSwiglu ? " pair" : "",
                static_cast<long>(rows));
    std::vector<Result> results;
    for (const GemvTuning& tuning : candidates(device, shape, rows)) {
      results.push_back(measure(tuning));
      const Result& r = results.back();
      std::fprintf(log, "%s,%ld,%ld,%d,%ld,%d,%d,%d,%d,%d,%d,%.2f\n", name_of(shape.type),
                   static_cast<long>(shape.n), static_cast<long>(shape.k),
                   static_cast<int>(shape.form), static_cast<long>(rows), r.tuning.cluster,
                   r.tuning.blocks_per_sm, r.tuning.stage_tiles, r.tuning.slots,
                   r.tuning.early_slots, r.blocks, r.us);
    }
    // Last, when the clocks have settled.
    print_result("default ", measure(gemv_tuning(device, shape.type, rows, shape.k, units)),
                 shape.bytes());
    std::sort(results.begin(), results.end(),
              [](const Result& a, const Result& b) { return a.us < b.us; });
    std::printf(" |");
    for (size_t i = 0; i < std::min<size_t>(results.size(), 4); ++i) {
      print_result("", results[i], shape.bytes());
    }
    std::printf("\n");
    std::fflush(stdout);
  }
}

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "all";
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was printed before a hang is seen
  GemvDevice device;
  REQUIRE_CUDA(gemv_prepare(&device));
  cudaDeviceProp properties;
  REQUIRE_CUDA(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %d multiprocessors; clusters of 1, 2, 4, 8 at once, by blocks sharing one:",
              properties.name, device.multiprocessors);
  for (const auto& counts : device.resident_clusters) {
    std::printf("  %d %d %d", counts[0], counts[1], counts[2]);
  }
  std::printf("\n");
  if (mode == "check" || mode == "check-small" || mode == "check-sm80" || mode == "all") {
    const int failures =
        check_gemv(device, mode == "check" || mode == "all" ? CheckSize::kFull : CheckSize::kSmall);
    if (failures != 0) return 1;
  }
  if (mode.starts_with("check")) return 0;
  Timer timer;
  if (mode == "one") {  // N K ROWS CLUSTER BLOCKS TILES SLOTS EARLY [OVERLAP]: p4 for a profiler
    if (argc < 10) return 2;
    const ShapeData data({TileType::kP4, std::atoi(argv[2]), std::atoi(argv[3])});
    const GemvTuning tuning{std::atoi(argv[5]), std::atoi(argv[6]), std::atoi(argv[7]),
                            std::atoi(argv[8]), std::atoi(argv[9])};
    const GemvOrder order = argc > 10 ? GemvOrder::kOverlap : GemvOrder::kSerial;
    std::printf("%.2f us\n",
                data.time_us(timer, device, std::atoi(argv[4]), order, &tuning, 40, 5));
    return 0;
  }
  const double bandwidth = read_bandwidth(timer);
  std::printf("read-only stream: %.2f TB/s\n", bandwidth);
  if (mode == "sweep") {
    FILE* log = std::fopen(argc > 2 ? argv[2] : "/dev/null", "w");
    if (log == nullptr) return 1;
    for (const Shape& shape : kShapes) sweep_shape(timer, device, shape, log);
    if (argc > 3) {
      for (const Shape& shape : kLlamaShapes) sweep_shape(timer, device, shape, log);
      for (const TileType type : {TileType::kP8, TileType::kF16, TileType::kBf16}) {
        sweep_shape(timer, device, {type, 5120, 6144}, log);
        sweep_shape(timer, device, {type, 16384, 5120}, log);
      }
    }
    std::fclose(log);
    return 0;
  }
  for (const TileType type : {TileType::kP4, TileType::kP8, TileType::kF16, TileType::kBf16}) {
    for (Shape shape : kShapes) {
      shape.type = type;
      time_shape(timer, device, shape);
    }
  }
  for (const Shape& shape : kLlamaShapes) time_shape(timer, device, shape);
  time_layers(timer, device, TileType::kP4, bandwidth);
  time_layers(timer, device, TileType::kP8, bandwidth);
  return 0;
}

}  // namespace
}  // namespace reckon::bench

int main(int argc, char** argv) {
  return reckon::bench::run(argc, argv);
}
