// Correctness half of gemv_bench: random weights and activations against a float64 reference, and
// bit-identity of a row over every row count, geometry and form.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gemv_bench.h"
#include "kernels/cuda/gemv_geometry.h"

namespace reckon::bench {
namespace {

using namespace kernels::cuda;  // NOLINT: a program's own file

constexpr int64_t kRows = 33;
constexpr int64_t kSampledColumns = 48;
constexpr float kGuard = 12345.5f;

const char* name_of(TileType type) {
  constexpr const char* kNames[] = {"p4", "p8", "f16", "bf16", "f32"};
  return kNames[static_cast<int>(type)];
}

uint16_t to_half_bits(float value) {  // of 2^-10 ... 2^10 only, truncating
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits >> 16 & 0x8000) |
                               ((bits >> 13 & 0x3fffff) - (112 << 10)) & 0x7fff);
}

struct Matrix {
  TileType type;
  int64_t n, k;
  std::vector<uint8_t> tiles;
  DeviceBytes device;
};

Matrix random_matrix(TileType type, int64_t n, int64_t k, std::mt19937& random) {
  std::uniform_real_distribution<float> unit(0.001f, 0.05f);
  std::normal_distribution<float> normal;
  std::vector<uint8_t> rows(static_cast<size_t>(n * packed_row_bytes(type, k)));
  uint8_t* at = rows.data();
  const auto put = [&](const void* from, size_t size) {
    std::memcpy(at, from, size);
    at += size;
  };
  for (int64_t row = 0; row < n; ++row) {
    if (type == TileType::kP4 || type == TileType::kP8) {
      for (int64_t tile = 0; tile < tiles_of(k); ++tile) {
        const float scale = unit(random);
        const uint16_t halves[2] = {to_half_bits(scale), to_half_bits(-7.2f * scale)};
        put(halves, type == TileType::kP4 ? 4 : 2);
        for (int i = 0; i < (type == TileType::kP4 ? 32 : 64); ++i) {
          const uint8_t code = static_cast<uint8_t>(random());
          put(&code, 1);
        }
      }
    } else {
      for (int64_t i = 0; i < k; ++i) {
        const float value = normal(random);
        const uint16_t half = to_half_bits(std::copysign(std::abs(value) + 0.01f, value));
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        const uint16_t bf16 = static_cast<uint16_t>(bits >> 16);
        if (type == TileType::kF32) put(&value, 4);
        if (type == TileType::kF16) put(&half, 2);
        if (type == TileType::kBf16) put(&bf16, 2);
      }
    }
  }
  Matrix m{type, n, k, {}, {}};
  m.tiles.resize(static_cast<size_t>(tile_bytes(type, n, k)));
  const int64_t strips = strips_of(n), half = strips / 2;  // in two calls, as a loader would
  pack_tiles(type, rows.data(), n, k, 0, half, m.tiles.data());
  pack_tiles(type, rows.data(), n, k, half, strips - half,
             m.tiles.data() + half * tiles_of(k) * tile_bytes(type));
  m.device = DeviceBytes(tile_bytes(type, n, k));
  REQUIRE_CUDA(
      cudaMemcpy(m.device.as<void>(), m.tiles.data(), m.tiles.size(), cudaMemcpyHostToDevice));
  return m;
}

struct Failures {
  int count = 0;
  void add(const std::string& text) {
    if (++count <= 40) std::printf("FAIL %s\n", text.c_str());
  }
};

struct Case {
  const GemvDevice& device;
  TileType type;
  int64_t k, x_stride;
  std::vector<float> x;  // [kRows, x_stride]
  DeviceBytes x_device;
};

enum class Family { kMma, kSimt };

// Runs rows first ... first + rows - 1 against the weights and returns [weights][rows, n], after
// checking that everything inside and nothing outside was written.
std::vector<std::vector<float>> run(const Case& c, Family family,
                                    const std::vector<const Matrix*>& weights, GemvForm form,
                                    int64_t first, int64_t rows, const GemvTuning* tuning,
                                    GemvOrder order, const std::string& what, Failures& failures) {
  constexpr int64_t kPad = 3;
  const size_t outs = form == GemvForm::kSwiglu ? 1 : weights.size();
  std::vector<DeviceBytes> buffers;
  GemvParams p;
  p.type = c.type;
  p.x = c.x_device.as<float>() + first * c.x_stride;
  p.rows = rows;
  p.k = c.k;
  p.x_stride = c.x_stride;
  p.weight_count = static_cast<int>(weights.size());
  p.form = form;
  p.order = order;
  p.tuning = tuning;
  for (size_t i = 0; i < weights.size(); ++i) {
    p.weights[i].tiles = weights[i]->device.as<void>();
    p.weights[i].n = weights[i]->n;
    if (i >= outs) continue;
    const int64_t stride = weights[i]->n + kPad;
    const std::vector<float> poison(static_cast<size_t>((rows + 1) * stride), kGuard);
    buffers.emplace_back(static_cast<int64_t>(poison.size() * 4));
    REQUIRE_CUDA(cudaMemcpy(buffers[i].as<void>(), poison.data(), poison.size() * 4,
                            cudaMemcpyHostToDevice));
    p.weights[i].out = buffers[i].as<float>();
    p.weights[i].out_stride = stride;
  }
  const GemvLaunch launch =
      family == Family::kMma ? gemv_mma(c.device, p, nullptr) : gemv_simt(c.device, p, nullptr);
  if (launch.error != 0) {
    failures.add(what + ": " + cudaGetErrorString(static_cast<cudaError_t>(launch.error)));
  }
  REQUIRE_CUDA(cudaDeviceSynchronize());
  std::vector<std::vector<float>> result(outs);
  for (size_t i = 0; i < outs; ++i) {
    const int64_t n = weights[i]->n, stride = n + kPad;
    std::vector<float> raw(static_cast<size_t>((rows + 1) * stride));
    REQUIRE_CUDA(
        cudaMemcpy(raw.data(), buffers[i].as<void>(), raw.size() * 4, cudaMemcpyDeviceToHost));
    bool stray = false, missing = false;
    for (int64_t r = 0; r <= rows; ++r) {
      for (int64_t j = 0; j < stride; ++j) {
        const float value = raw[static_cast<size_t>(r * stride + j)];
        const bool inside = r < rows && j < n;
        missing |= inside && value == kGuard;
        stray |= !inside && value != kGuard;
        if (inside) result[i].push_back(value);
      }
    }
    if (stray) failures.add(what + ": wrote outside its result");
    if (missing) failures.add(what + ": left results unwritten");
  }
  return result;
}

bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * 4) == 0;
}

// Largest error of a row against float64, over sampled columns.
double largest_error(const Case& c, const Matrix& m, const std::vector<float>& out,
                     const std::string& what, Failures& failures) {
  std::vector<int64_t> columns;
  for (int64_t i = 0; i < std::min(m.n, kSampledColumns); ++i) {
    columns.push_back(m.n <= kSampledColumns ? i : m.n - 1 - i * (m.n - 1) / (kSampledColumns - 1));
  }
  std::vector<double> error(kRows, 0), norm(kRows, 0);
  std::vector<float> w(static_cast<size_t>(m.k));
  for (const int64_t column : columns) {
    unpack_tile_row(m.type, m.tiles.data(), m.k, column, w.data());
    for (int64_t r = 0; r < kRows; ++r) {
      double sum = 0, magnitude = 0;
      const float* x = c.x.data() + r * c.x_stride;
      for (int64_t i = 0; i < m.k; ++i) sum += double{x[i]} * double{w[static_cast<size_t>(i)]};
      for (int64_t i = 0; i < m.k; ++i) {
        const double term = double{x[i]} * double{w[static_cast<size_t>(i)]};
        magnitude += term * term;
      }
      const double delta = sum - double{out[static_cast<size_t>(r * m.n + column)]};
      error[static_cast<size_t>(r)] += delta * delta;
      // A single output may cancel by chance; its expected size does not.
      norm[static_cast<size_t>(r)] += std::max(sum * sum, magnitude);
    }
  }
  double largest = 0;
  for (size_t r = 0; r < kRows; ++r) {
    if (norm[r] == 0) {
      if (error[r] != 0) failures.add(what + ": a row of zeros gave something else");
      continue;
    }
    const double ratio = std::sqrt(error[r] / norm[r]);
    largest = std::isfinite(ratio) ? std::max(largest, ratio) : 1e30;
  }
  return largest;
}

void fill_x(Case& c, std::mt19937& random) {
  std::normal_distribution<float> normal;
  c.x.resize(static_cast<size_t>(kRows * c.x_stride));
  for (int64_t r = 0; r < kRows; ++r) {
    const float size = r == 5   ? 1e6f
                       : r == 9 ? 0.0f
                                : std::pow(10.0f, static_cast<float>(r % 7 - 3));
    for (int64_t i = 0; i < c.x_stride; ++i) {
      float value = normal(random) * size;
      if (r == 11) value = std::abs(value);
      if (r == 12 && i % 97 == 0) value *= 300;  // outliers
      c.x[static_cast<size_t>(r * c.x_stride + i)] = i < c.k ? value : NAN;
    }
  }
  c.x_device = DeviceBytes(static_cast<int64_t>(c.x.size() * 4));
  REQUIRE_CUDA(
      cudaMemcpy(c.x_device.as<void>(), c.x.data(), c.x.size() * 4, cudaMemcpyHostToDevice));
}

struct Worst {
  double mma = 0, simt = 0;
};

void check_shape(const GemvDevice& device, TileType type, int64_t n, int64_t k, CheckSize size,
                 std::mt19937& random, Worst& worst, Failures& failures) {
  const std::string what =
      std::string(name_of(type)) + " " + std::to_string(n) + "x" + std::to_string(k);
  Case c{device, type, k, k % 128 == 0 ? k : k + 5, {}, {}};
  fill_x(c, random);
  const Matrix m = random_matrix(type, n, k, random);
  const Matrix second = random_matrix(type, n, k, random);
  const Matrix third = random_matrix(type, std::max<int64_t>(n / 2, 1), k, random);
  for (const Family family : {Family::kMma, Family::kSimt}) {
    if (family == Family::kMma && type == TileType::kF32) continue;
    const bool mma = family == Family::kMma;
    const std::string kind = what + (mma ? " mma" : " simt");
    const auto plain = [&](const Matrix& w, int64_t first, int64_t rows, const GemvTuning* tuning,
                           GemvOrder order) {
      return run(c, family, {&w}, GemvForm::kStore, first, rows, tuning, order, kind, failures)[0];
    };
    const std::vector<float> all = plain(m, 0, kRows, nullptr, GemvOrder::kSerial);
    const double error = largest_error(c, m, all, kind, failures);
    (mma ? worst.mma : worst.simt) = std::max(mma ? worst.mma : worst.simt, error);
    if (!(error < (mma ? 5e-3 : 1e-4))) failures.add(kind + ": error " + std::to_string(error));
    const auto compare = [&](const std::vector<float>& got, int64_t first, int64_t rows,
                             const std::string& how) {
      if (!same_bits(got.data(), all.data() + first * n, rows * n)) {
        failures.add(kind + ": other bits with " + how);
      }
    };
    if (!same_bits(plain(m, 0, kRows, nullptr, GemvOrder::kSerial).data(), all.data(), kRows * n)) {
      failures.add(kind + ": two runs differ");
    }
    const int64_t step = size == CheckSize::kSmall ? 5 : 1;
    for (int64_t rows = 1; rows <= 17; rows += step) {
      const int64_t first = rows * 3 % 16;
      compare(plain(m, first, rows, nullptr, rows % 2 ? GemvOrder::kOverlap : GemvOrder::kSerial),
              first, rows, std::to_string(rows) + " rows");
    }
    if (mma) {
      for (const int cluster : {1, 2, 4, 8}) {
        for (const int64_t rows : {1, 7, 16}) {
          for (const int slots : {2, 7}) {
            const GemvTuning tuning =
                slots == 2 ? GemvTuning{cluster, 1, 3, slots, 1} : GemvTuning{cluster, 2, 4, slots};
            compare(plain(m, 2, rows, &tuning, GemvOrder::kOverlap), 2, rows,
                    "cluster " + std::to_string(cluster));
          }
        }
      }
    }
    const std::vector<float> second_all = plain(second, 0, kRows, nullptr, GemvOrder::kSerial);
    const std::vector<float> third_all = plain(third, 0, kRows, nullptr, GemvOrder::kSerial);
    for (const int64_t rows : {1, 4, 11, 33}) {
      const auto group = run(c, family, {&m, &third, &second}, GemvForm::kStore, 0, rows, nullptr,
                             GemvOrder::kOverlap, kind + " group", failures);
      compare(group[0], 0, rows, "a group");
      if (!same_bits(group[1].data(), third_all.data(), rows * third.n) ||
          !same_bits(group[2].data(), second_all.data(), rows * n)) {
        failures.add(kind + ": other bits in a group of " + std::to_string(rows) + " rows");
      }
    }
    const std::vector<float> pair = run(c, family, {&m, &second}, GemvForm::kSwiglu, 0, kRows,
                                        nullptr, GemvOrder::kSerial, kind, failures)[0];
    for (size_t i = 0; i < pair.size(); ++i) {
      const double gate = double{all[i]};
      const double want = gate / (1 + std::exp(-gate)) * double{second_all[i]};
      if (!(std::abs(double{pair[i]} - want) <= 1e-5 * std::abs(want) + 1e-30)) {
        failures.add(kind + ": SwiGLU gave " + std::to_string(pair[i]) + ", not " +
                     std::to_string(want));
        break;
      }
    }
    for (const int64_t rows : {1, 3, 8, 9, 16}) {
      const auto some = run(c, family, {&m, &second}, GemvForm::kSwiglu, 1, rows, nullptr,
                            GemvOrder::kOverlap, kind, failures)[0];
      if (!same_bits(some.data(), pair.data() + n, rows * n)) {
        failures.add(kind + ": other bits of SwiGLU with " + std::to_string(rows) + " rows");
      }
    }
  }
}

// A chain of dependent launches in a graph gives what the same launches in order give.
void check_chain(const GemvDevice& device, TileType type, Failures& failures) {
  constexpr int64_t kWidth = 1024, kChainRows = 5;
  constexpr int kLinks = 24;
  std::mt19937 random(7);
  Case c{device, type, kWidth, kWidth, {}, {}};
  fill_x(c, random);
  std::vector<Matrix> weights;
  for (int i = 0; i < 3; ++i) weights.push_back(random_matrix(type, kWidth, kWidth, random));
  const int64_t bytes = kChainRows * kWidth * 4;
  std::vector<DeviceBytes> x;
  for (int i = 0; i < 3; ++i) x.emplace_back(bytes);
  cudaStream_t stream;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto chain = [&](GemvOrder order) {
    for (int link = 0; link < kLinks; ++link) {
      GemvParams p;
      p.type = type;
      p.x = x[static_cast<size_t>(link % 3)].as<float>();
      p.rows = kChainRows;
      p.k = p.x_stride = kWidth;
      p.order = order;
      p.weights[0] = {weights[static_cast<size_t>(link % 3)].device.as<void>(),
                      x[static_cast<size_t>((link + 1) % 3)].as<float>(), kWidth, kWidth};
      const GemvLaunch launch = gemv_mma(device, p, stream);
      if (launch.error != 0) failures.add("chain: launch");
    }
  };
  const auto reset = [&] {
    for (const DeviceBytes& buffer : x) {
      REQUIRE_CUDA(cudaMemsetAsync(buffer.as<void>(), 0, static_cast<size_t>(bytes), stream));
    }
    REQUIRE_CUDA(cudaMemcpyAsync(x[0].as<void>(), c.x_device.as<void>(), static_cast<size_t>(bytes),
                                 cudaMemcpyDeviceToDevice, stream));
  };
  const auto result = [&] {
    std::vector<float> out(static_cast<size_t>(kChainRows * kWidth));
    REQUIRE_CUDA(cudaStreamSynchronize(stream));
    REQUIRE_CUDA(cudaMemcpy(out.data(), x[kLinks % 3].as<void>(), static_cast<size_t>(bytes),
                            cudaMemcpyDeviceToHost));
    return out;
  };
  reset();
  chain(GemvOrder::kSerial);
  const std::vector<float> serial = result();
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  REQUIRE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  chain(GemvOrder::kOverlap);
  REQUIRE_CUDA(cudaStreamEndCapture(stream, &graph));
  REQUIRE_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int repeat = 0; repeat < 20; ++repeat) {
    reset();
    if (repeat % 2) {
      REQUIRE_CUDA(cudaGraphLaunch(executable, stream));
    } else {
      chain(GemvOrder::kOverlap);
    }
    const std::vector<float> got = result();
    if (!same_bits(got.data(), serial.data(), kChainRows * kWidth)) {
      failures.add(std::string(name_of(type)) + ": an overlapped chain differs");
      break;
    }
  }
  REQUIRE_CUDA(cudaGraphExecDestroy(executable));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
  REQUIRE_CUDA(cudaStreamDestroy(stream));
}

}  // namespace

int check_gemv(const GemvDevice& device, CheckSize size) {
  using Shapes = std::vector<std::pair<int64_t, int64_t>>;
  const Shapes small = {{1, 16}, {17, 48}, {40, 64}, {131, 1000}};
  const Shapes full = {{1, 16},      {17, 48},     {251, 64},   {16, 100},   {17, 2880},
                       {2880, 2880}, {251, 10944}, {251, 5120}, {4096, 512}, {6144, 320}};
  std::mt19937 random(20250101);
  Failures failures;
  for (const TileType type :
       {TileType::kP4, TileType::kP8, TileType::kF16, TileType::kBf16, TileType::kF32}) {
    Worst worst;
    for (const auto& [n, k] : size == CheckSize::kSmall ? small : full) {
      check_shape(device, type, n, k, size, random, worst, failures);
    }
    if (type != TileType::kF32) check_chain(device, type, failures);
    std::printf("check %-4s  worst error of a row: mma %.2e, simt %.2e\n", name_of(type), worst.mma,
                worst.simt);
  }
  std::printf("check: %d failures\n", failures.count);
  std::fflush(stdout);
  return failures.count;
}

}  // namespace reckon::bench
