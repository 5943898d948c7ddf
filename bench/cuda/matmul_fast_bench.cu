// Times the fast matmuls by themselves, weights rotated so that the cache serves none of them from
// one call to the next:
//
//   matmul_fast_bench time [TYPES [ROWS [SHAPES]]]    beside cuBLASLt's product of bf16 weights
//   matmul_fast_bench sweep [TYPES [ROWS [SHAPES]]]   every cut of fast_tile, for the plan
//   matmul_fast_bench one ROWS N K SLICES TOKENS SPLIT    a few launches of p4, for a profiler
//
// TYPES: p4,p8,f16,bf16 (p4); ROWS: 512,2048 (those); SHAPES: 1024x4096,... (a list of models').
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <sstream>
#include <string>

#include "kernels/call.h"
#include "kernels/cuda/dequantise.h"
#include "kernels/cuda/matmul_fast_cublas.h"
#include "kernels/cuda/matmul_fast_input.h"
#include "kernels/cuda/matmul_fast_plan.h"
#include "kernels/cuda/matmul_fast_tile.h"
#include "kernels/cuda/weight_tiles.h"
#include "tensor/dtype.h"
#include "timing.h"

namespace reckon::bench {
namespace {

using namespace kernels;
using namespace kernels::cuda;

constexpr int kCalls = 8;
constexpr int64_t kMostRows = 2048;
constexpr size_t kPoolBytes = size_t{1} << 30;

struct Shape {
  std::string what;
  Op op;
  int64_t n, k;
};
// Of an 8B and a 27B model.
const std::vector<Shape> kShapes = {
    {"qkv", Op::kMatmulGroup, 6144, 4096},      {"4096x4096", Op::kMatmul, 4096, 4096},
    {"1024x4096", Op::kMatmul, 1024, 4096},     {"gate_up", Op::kMatmulSwiglu, 14336, 4096},
    {"14336x4096", Op::kMatmul, 14336, 4096},   {"4096x14336", Op::kMatmul, 4096, 14336},
    {"128256x4096", Op::kMatmul, 128256, 4096}, {"34816x5120", Op::kMatmul, 34816, 5120},
    {"5120x17408", Op::kMatmul, 5120, 17408},   {"5120x6144", Op::kMatmul, 5120, 6144}};
constexpr int64_t kMostK = 17408, kMostN = 128256;

// Tiles of random codes, scales of about 0.01 (p4) and 0.0008 (p8) behind them, minima for a mean
// of 0; or tiles of normal values.
__global__ void fill_coded(uint32_t* words, uint64_t count, int tile_words, int code_words,
                           bool minima) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * blockDim.x) {
    const uint32_t bits = mixed(i);
    const float spread = 0.5f + static_cast<float>(bits >> 8) * 0x1p-24f;
    __half2 pair = __floats2half2_rn(0.0008f * spread, 0.0008f * spread);
    if (minima) pair = __floats2half2_rn(0.01f * spread, -0.075f * spread);
    words[i] = static_cast<int>(i % tile_words) < code_words
                   ? bits
                   : *reinterpret_cast<const uint32_t*>(&pair);
  }
}

class Tiles {
 public:
  explicit Tiles(DType type) : type_(*fast_tile_type(type)), pool_(kPoolBytes) {
    const auto tile_words = static_cast<int>(tile_bytes(type_) / 4);
    if (type == DType::kF16) {
      fill_normal<<<2048, 256>>>(reinterpret_cast<__half*>(pool_.data()), kPoolBytes / 2, 0.05f);
    } else if (type == DType::kBF16) {
      fill_normal<<<2048, 256>>>(reinterpret_cast<__nv_bfloat16*>(pool_.data()), kPoolBytes / 2,
                                 0.05f);
    } else {
      fill_coded<<<2048, 256>>>(reinterpret_cast<uint32_t*>(pool_.data()), kPoolBytes / 4,
                                tile_words, type == DType::kP4 ? 128 : 256, type == DType::kP4);
    }
    must(cudaDeviceSynchronize());
  }
  // `weights` matrices that follow each other, others in each of up to kCalls calls.
  [[nodiscard]] const uint8_t* of(int call, int64_t n, int64_t k, int64_t weights) const {
    const int64_t bytes = tile_bytes(type_, n, k) * weights;
    const int64_t copies = std::max<int64_t>(1, static_cast<int64_t>(kPoolBytes) / bytes);
    return pool_.data() + call % std::min<int64_t>(copies, kCalls) * bytes;
  }
  [[nodiscard]] TileType type() const { return type_; }

 private:
  TileType type_;
  Device<uint8_t> pool_;
};

struct Kernels {
  MatmulFn matmul;
  MatmulGroupFn group;
  MatmulSwigluFn swiglu;
};
constexpr Kernels kTileKernels{matmul_fast_tile, matmul_group_fast_tile, matmul_swiglu_fast_tile};
constexpr Kernels kCublasKernels{matmul_fast_cublas, matmul_group_fast_cublas,
                                 matmul_swiglu_fast_cublas};

class Times {
 public:
  void time(DType type, const std::vector<int64_t>& row_counts, const std::vector<Shape>& shapes) {
    const Tiles tiles(type);
    std::printf(
        "\n| %s | rows | fast_tile us | TFLOP/s | of cuBLAS bf16 | fast_cublas us | of "
        "cuBLAS bf16 | cuBLAS bf16 us | TFLOP/s | input us |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n",
        std::string(dtype_name(type)).c_str());
    for (const Shape& shape : shapes) {
      for (const int64_t rows : row_counts) time_shape(type, tiles, shape, rows);
    }
  }

  void sweep(DType type, const std::vector<int64_t>& row_counts, const std::vector<Shape>& shapes) {
    const Tiles tiles(type);
    for (const Shape& shape : shapes) {
      if (shape.op != Op::kMatmul) continue;
      for (const int64_t rows : row_counts) sweep_shape(type, tiles, shape, rows);
    }
  }

  void one(int64_t rows, int64_t n, int64_t k, const TileCut& cut) {
    const Tiles tiles(DType::kP4);
    for (int i = 0; i < 3; ++i) {
      matmul_fast_tile_cut(matmul(DType::kP4, tiles.of(i, n, k, 1), rows, n, k), cut,
                           bench_.context);
    }
    bench_.wait();
  }

 private:
  [[nodiscard]] MatmulArgs matmul(DType type, const void* weight, int64_t rows, int64_t n,
                                  int64_t k) const {
    MatmulArgs args;
    args.x = x_.data();
    args.weight = weight;
    args.weight_type = type;
    args.out = out_.data();
    args.rows = rows;
    args.n = n;
    args.k = k;
    return args;
  }

  void call(const Kernels& kernels, DType type, const Tiles& tiles, const Shape& s, int64_t rows,
            int i) {
    const uint8_t* weight = tiles.of(i, s.n, s.k, s.op == Op::kMatmulSwiglu ? 2 : 1);
    if (s.op == Op::kMatmul) {
      kernels.matmul(matmul(type, weight, rows, s.n, s.k), bench_.context);
    } else if (s.op == Op::kMatmulGroup) {
      MatmulGroupArgs args;
      args.x = x_.data();
      args.weight_type = type;
      args.rows = rows;
      args.k = s.k;
      for (const int64_t n : {s.n - 2048, int64_t{1024}, int64_t{1024}}) {
        args.parts[args.count++] = {weight, out_.data(), n};
        weight += tile_bytes(tiles.type(), n, s.k);
      }
      kernels.group(args, bench_.context);
    } else {
      const uint8_t* up = weight + tile_bytes(tiles.type(), s.n, s.k);
      kernels.swiglu({x_.data(), weight, up, type, out_.data(), rows, s.n, s.k, {}},
                     bench_.context);
    }
  }

  // The yardstick: both operands in bf16 already, the result in float32.
  void cublas(const Shape& s, int64_t rows, int i) {
    const int64_t weights = s.op == Op::kMatmulSwiglu ? 2 : 1;
    const int64_t size = s.n * s.k;
    const int64_t copies = static_cast<int64_t>(plain_.size()) / (size * weights);
    auto* library = static_cast<BlasLt*>(bench_.queue.matmul_library);
    for (int64_t w = 0; w < weights; ++w) {
      BlasLtMatmul product;
      product.type = BlasLtType::kBf16;
      product.x = plain_x_.data();
      product.weight = plain_.data() + (i % std::min<int64_t>(copies, kCalls) * weights + w) * size;
      product.out = out_.data();
      product.rows = rows;
      product.n = product.out_stride = s.n;
      product.k = product.x_stride = product.weight_stride = s.k;
      const char* error = library->matmul(product, bench_.context.scratch, kBlasLtWorkspaceBytes,
                                          bench_.queue.stream);
      if (error != nullptr) bench_.context.error = error;
    }
  }

  void time_shape(DType type, const Tiles& tiles, const Shape& shape, int64_t rows) {
    if (bench_.queue.matmul_library == nullptr) {
      std::printf("no cuBLASLt: %s\n", blaslt_missing_reason().c_str());
      std::exit(2);
    }
    Replay tile(bench_, kCalls, [&](int i) { call(kTileKernels, type, tiles, shape, rows, i); });
    Replay library(bench_, kCalls,
                   [&](int i) { call(kCublasKernels, type, tiles, shape, rows, i); });
    Replay plain(bench_, kCalls, [&](int i) { cublas(shape, rows, i); });
    Replay input(bench_, kCalls, [&](int) {
      must(convert_input(x_.data(), rows, shape.k, type == DType::kBF16, InputOrder::kTiles,
                         padded_tokens(rows), bench_.context.scratch, out_.data(),
                         bench_.queue.stream)
               .error);
    });
    for (int i = 0; i < 9; ++i) {
      for (Replay* replay : {&tile, &library, &plain, &input}) replay->run();
    }
    const double flops = 2.0 * static_cast<double>(rows * shape.n * shape.k) *
                         (shape.op == Op::kMatmulSwiglu ? 2 : 1);
    std::printf("| %s | %lld | %.1f | %.0f | %.2f | %.1f | %.2f | %.1f | %.0f | %.1f |\n",
                shape.what.c_str(), static_cast<long long>(rows), tile.median(),
                flops / tile.median() * 1e-6, plain.median() / tile.median(), library.median(),
                plain.median() / library.median(), plain.median(), flops / plain.median() * 1e-6,
                input.median());
    std::fflush(stdout);
  }

  // Fastest first; what the plan picks in brackets.
  void sweep_shape(DType type, const Tiles& tiles, const Shape& shape, int64_t rows) {
    std::vector<std::pair<TileCut, std::unique_ptr<Replay>>> replays;
    for (const int slices : {1, 2}) {
      for (const int tokens : {16, 32, 64, 128, 160, 192, 256}) {
        if ((tokens > 16 && tokens / 2 >= rows) || (tokens > 128 && slices == 2)) continue;
        if (tokens * 4 < std::min<int64_t>(rows, 256)) continue;
        for (const int split : {1, 2, 3, 4, 6, 8}) {
          const int64_t tiles_in_all = shape.n / (128 * slices) * (rows / tokens);
          if (split > 1 && (tokens > 128 || tiles_in_all > 300)) continue;
          const TileCut cut{slices, tokens, split};
          replays.emplace_back(cut, std::make_unique<Replay>(bench_, kCalls, [&, cut](int i) {
                                 matmul_fast_tile_cut(matmul(type, tiles.of(i, shape.n, shape.k, 1),
                                                             rows, shape.n, shape.k),
                                                      cut, bench_.context);
                               }));
        }
      }
    }
    for (int i = 0; i < 7; ++i) {
      for (auto& [cut, replay] : replays) replay->run();
    }
    std::sort(replays.begin(), replays.end(),
              [](const auto& a, const auto& b) { return a.second->median() < b.second->median(); });
    int multiprocessors = 0;
    must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    const TileCut rule = tile_cut(TileShape::kAuto, false, rows, shape.n, shape.k, multiprocessors);
    std::printf("%s %lldx%lldx%lld:", std::string(dtype_name(type)).c_str(),
                static_cast<long long>(rows), static_cast<long long>(shape.n),
                static_cast<long long>(shape.k));
    for (const auto& [cut, replay] : replays) {
      const bool picked = cut == rule;
      std::printf(" %s%dx%d/%d %.1f%s", picked ? "[" : "", cut.slices, cut.tokens, cut.split,
                  replay->median(), picked ? "]" : "");
    }
    std::printf("\n");
  }

  Bench bench_{size_t{768} << 20};
  Device<float> x_{size_t{kMostRows} * kMostK, 1};
  Device<float> out_{size_t{kMostRows} * kMostN};
  Device<__nv_bfloat16> plain_x_{size_t{kMostRows} * kMostK, 1};
  Device<__nv_bfloat16> plain_{kPoolBytes, 0.05f};
};

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

int usage() {
  std::printf(
      "matmul_fast_bench time|sweep [TYPES [ROWS [SHAPES]]] | one ROWS N K SLICES TOKENS SPLIT\n");
  return 2;
}

int run(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "one" && argc == 8) {
    Times().one(std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]),
                {std::atoi(argv[5]), std::atoi(argv[6]), std::atoi(argv[7])});
    return 0;
  }
  if ((mode != "time" && mode != "sweep") || argc > 5) return usage();
  std::vector<int64_t> rows;
  for (const std::string& part : parts_of(argc > 3 ? argv[3] : "512,2048")) {
    rows.push_back(std::atoll(part.c_str()));
    if (rows.back() < 1 || rows.back() > kMostRows) return usage();
  }
  std::vector<Shape> shapes = kShapes;
  if (argc > 4) shapes.clear();
  for (const std::string& part : parts_of(argc > 4 ? argv[4] : "")) {
    Shape shape{part, Op::kMatmul, 0, 0};
    long long n = 0, k = 0;
    if (std::sscanf(part.c_str(), "%lldx%lld", &n, &k) != 2 || n < 1 || n > kMostN || k < 1 ||
        k > kMostK) {
      return usage();
    }
    shape.n = n;
    shape.k = k;
    shapes.push_back(shape);
  }
  print_device();
  Times times;
  for (const std::string& name : parts_of(argc > 2 ? argv[2] : "p4")) {
    bool known = false;
    for (const DType type : {DType::kP4, DType::kP8, DType::kF16, DType::kBF16}) {
      if (dtype_name(type) != name) continue;
      known = true;
      mode == "time" ? times.time(type, rows, shapes) : times.sweep(type, rows, shapes);
    }
    if (!known) return usage();
  }
  return 0;
}

}  // namespace
}  // namespace reckon::bench

int main(int argc, char** argv) {
  return reckon::bench::run(argc, argv);
}
