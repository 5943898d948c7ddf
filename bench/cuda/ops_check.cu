// Checks and times the CUDA kernels of src/kernels/cuda (but the matmuls) on their own, with stubs
// for the session around them:
//   ops_check check        every check; exit status 1 if one fails
//   ops_check small        few small shapes, for compute-sanitizer
//   ops_check time         medians of graph replays
//   ops_check profile      a few launches of decode attention, for a profiler
// Inputs are random, outputs are poisoned with NaN before each run, caches too.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding_tiles.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/reference.h"
#include "kernels/cuda/sample.h"
#include "kernels/cuda/weight_tiles.h"
#include "tensor/blocks.h"

namespace reckon::kernels {

struct KernelContext {
  cuda::Queue queue;
  void* scratch = nullptr;
  uint64_t scratch_bytes = 0;
};

void* scratch(KernelContext& context, uint64_t bytes) {
  if (bytes > context.scratch_bytes) {
    std::printf("scratch of %llu bytes\n", static_cast<unsigned long long>(bytes));
    std::exit(2);
  }
  return context.scratch;
}

void* backend_queue(KernelContext& context) {
  return &context.queue;
}

void fail(KernelContext& /*context*/, const char* message) {
  std::printf("a kernel failed: %s\n", message);
  std::exit(2);
}

#define RECKON_STUB(Args) \
  void stamp(KernelContext&, const char*, const char*, const Args&) {}
RECKON_STUB(EmbeddingArgs)
RECKON_STUB(RmsNormArgs)
RECKON_STUB(RopeArgs)
RECKON_STUB(AttentionArgs)
RECKON_STUB(SwigluArgs)
RECKON_STUB(AddArgs)
RECKON_STUB(SampleArgs)
RECKON_STUB(AddRmsNormArgs)
RECKON_STUB(RopeAttentionArgs)

namespace cuda {
void note_launch(KernelContext&, const void*, dim3, dim3, uint32_t) {}
}  // namespace cuda

namespace {

using cuda::StepInput;

int failures = 0;
int checks = 0;

void cuda_ok(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("CUDA: %s\n", cudaGetErrorString(error));
  std::exit(2);
}

void expect(bool ok, const std::string& what) {
  ++checks;
  if (ok) return;
  if (++failures <= 60) std::printf("FAILED %s\n", what.c_str());
}

template <typename T>
class Device {
 public:
  explicit Device(size_t count) : count_(count) {
    cuda_ok(cudaMalloc(&data_, std::max<size_t>(count, 1) * sizeof(T)));
    poison();
  }
  explicit Device(const std::vector<T>& host) : Device(host.size()) { set(host); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { cudaFree(data_); }
  void poison() {
    cuda_ok(cudaMemset(data_, 0xff, count_ * sizeof(T)));
    cuda_ok(cudaDeviceSynchronize());
  }
  void set(const std::vector<T>& host) {
    cuda_ok(cudaMemcpy(data_, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    cuda_ok(cudaDeviceSynchronize());  // small copies may still be under way
  }
  [[nodiscard]] std::vector<T> get() const {
    std::vector<T> host(count_);
    cuda_ok(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  T* data() { return data_; }

 private:
  T* data_ = nullptr;
  size_t count_;
};

std::mt19937_64 random_engine(12345);

std::vector<float> normal(size_t count, float scale = 1) {
  static std::vector<float> pool;
  if (pool.empty()) {
    std::normal_distribution<float> distribution(0, 1);
    pool.resize((1 << 20) + 7);
    for (float& x : pool) x = distribution(random_engine);
  }
  std::vector<float> result(count);
  size_t at = random_engine() % pool.size();
  for (float& x : result) {
    x = pool[at] * scale;
    if (++at == pool.size()) at = random_engine() % pool.size();
  }
  return result;
}

int uniform_int(int low, int high) {
  return low + static_cast<int>(random_engine() % static_cast<uint64_t>(high - low + 1));
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// The largest of ||a - b|| / ||b|| over rows; infinity for NaN.
double row_error(const std::vector<float>& a, const std::vector<float>& b, size_t width) {
  double worst = 0;
  for (size_t r = 0; r < a.size() / width; ++r) {
    double difference = 0;
    double norm = 0;
    for (size_t i = r * width; i < (r + 1) * width; ++i) {
      const double d = static_cast<double>(a[i]) - b[i];
      difference += d * d;
      norm += static_cast<double>(b[i]) * b[i];
    }
    const double error = norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
    if (!(error <= worst)) worst = std::isnan(error) ? INFINITY : error;
  }
  return worst;
}

class Bench {
 public:
  Bench() : input_(1), tokens_(1 << 16), scratch_(size_t{512} << 20) {
    cuda_ok(cudaStreamCreateWithFlags(&context.queue.stream, cudaStreamNonBlocking));
    context.queue.input = input_.data();
    context.queue.tokens = tokens_.data();
    context.scratch = scratch_.data();
    context.scratch_bytes = size_t{512} << 20;
  }
  void step(int64_t position, double temperature = 0, double uniform = 0) {
    wait();
    input_.set({StepInput{position, temperature, uniform}});
  }
  void wait() {
    cuda_ok(cudaStreamSynchronize(context.queue.stream));
    cuda_ok(cudaGetLastError());
  }
  void tokens(const std::vector<int32_t>& tokens) { tokens_.set(tokens); }

  KernelContext context;

 private:
  Device<StepInput> input_;
  Device<int32_t> tokens_;
  Device<char> scratch_;
};

// --- Rows -------------------------------------------------------------------------------------

void check_norms(Bench& bench, bool small) {
  const std::vector<int> widths =
      small ? std::vector<int>{64, 577, 4096}
            : std::vector<int>{64, 128, 576, 577, 1024, 1025, 2880, 4096, 5120, 8192, 20002};
  double worst = 0;
  for (const int k : widths) {
    for (const int rows : small ? std::vector<int>{3} : std::vector<int>{1, 2, 5, 17}) {
      const std::string name = "norm " + std::to_string(rows) + "x" + std::to_string(k);
      const auto x = normal(size_t(rows) * k, 3);
      const auto y = normal(size_t(rows) * k);
      const auto w = normal(k);
      Device<float> dx(x), dy(y), dw(w), out(x.size()), out2(x.size()), sum(x.size());
      RmsNormArgs args{dx.data(), dw.data(), out.data(), rows, k, 1e-5F};
      cuda::rms_norm_exact(args, bench.context);
      args.out = out2.data();
      cuda::rms_norm_reference(args, bench.context);
      bench.wait();
      std::vector<float> expected(x.size());
      for (int r = 0; r < rows; ++r) {
        double total = 0;
        for (int i = 0; i < k; ++i) total += double(x[size_t(r) * k + i]) * x[size_t(r) * k + i];
        const double scale = 1 / std::sqrt(total / k + 1e-5);
        for (int i = 0; i < k; ++i) {
          expected[size_t(r) * k + i] = float(x[size_t(r) * k + i] * scale * w[i]);
        }
      }
      const auto exact = out.get();
      worst = std::max(worst, row_error(exact, expected, k));
      expect(row_error(exact, expected, k) < 2e-6, name + " exact");
      expect(row_error(out2.get(), expected, k) < 2e-6, name + " reference");
      for (int r = 0; r < rows; ++r) {  // one by one
        cuda::rms_norm_exact(
            {dx.data() + size_t(r) * k, dw.data(), out2.data() + size_t(r) * k, 1, k, 1e-5F},
            bench.context);
      }
      bench.wait();
      expect(same_bits(out2.get(), exact), name + " row by row");
      // residual += x, fused or not
      cuda::add_exact({dy.data(), dx.data(), sum.data(), rows, k}, bench.context);
      cuda::rms_norm_exact({sum.data(), dw.data(), out2.data(), rows, k, 1e-5F}, bench.context);
      out.poison();
      cuda::add_rms_norm_exact({dx.data(), dy.data(), dw.data(), out.data(), rows, k, 1e-5F},
                               bench.context);
      bench.wait();
      expect(same_bits(sum.get(), dy.get()), name + " add fused: sum");
      expect(same_bits(out.get(), out2.get()), name + " add fused: norm");
      // in place
      cuda::rms_norm_exact({sum.data(), dw.data(), sum.data(), rows, k, 1e-5F}, bench.context);
      bench.wait();
      expect(same_bits(sum.get(), out2.get()), name + " in place");
    }
  }
  std::printf("rms_norm: worst relative error %.1e\n", worst);
}

void check_elements(Bench& bench, bool small) {
  double worst = 0;
  for (const int k : small ? std::vector<int>{577} : std::vector<int>{1, 3, 576, 577, 14336}) {
    for (const int rows : {1, 2, 17}) {
      const auto gate = normal(size_t(rows) * k, 6);
      const auto up = normal(size_t(rows) * k);
      Device<float> dg(gate), du(up), out(gate.size()), out2(gate.size());
      const SwigluArgs args{dg.data(), du.data(), out.data(), rows, k};
      cuda::swiglu_exact(args, bench.context);
      cuda::swiglu_reference({dg.data(), du.data(), out2.data(), rows, k}, bench.context);
      bench.wait();
      std::vector<float> expected(gate.size());
      for (size_t i = 0; i < gate.size(); ++i) {
        expected[i] = float(double(gate[i]) / (1 + std::exp(-double(gate[i]))) * up[i]);
      }
      worst = std::max(worst, row_error(out.get(), expected, k));
      expect(row_error(out.get(), expected, 1) < 1e-6, "swiglu exact");
      expect(row_error(out2.get(), expected, 1) < 1e-6, "swiglu reference");
      for (size_t i = 0; i < gate.size(); ++i) expected[i] = gate[i] + up[i];
      out2.poison();
      cuda::add_reference({dg.data(), du.data(), out2.data(), rows, k}, bench.context);
      cuda::add_exact({dg.data(), du.data(), dg.data(), rows, k}, bench.context);
      bench.wait();
      expect(same_bits(dg.get(), expected), "add exact");
      expect(same_bits(out2.get(), expected), "add reference");
    }
  }
  std::printf("swiglu: worst relative error %.1e\n", worst);
}

void check_rope(Bench& bench) {
  double worst = 0;
  for (const int dim : {16, 64, 80, 128, 256}) {
    for (const int dims : {dim, dim / 2}) {
      for (const auto pairing : {RopePairing::kHalf, RopePairing::kAdjacent}) {
        for (const int64_t first : {int64_t{0}, int64_t{4095}, int64_t{999990}}) {
          const int rows = 7;
          const int heads = 9;
          const auto x = normal(size_t(rows) * heads * dim);
          Device<float> exact(x), reference(x), single(x);
          RopeArgs args{exact.data(), rows, heads, dim, dims, -1, 500000.0, pairing};
          bench.step(first);
          cuda::rope_exact(args, bench.context);
          args.x = reference.data();
          cuda::rope_reference(args, bench.context);
          bench.wait();
          std::vector<float> expected = x;
          for (int r = 0; r < rows; ++r) {
            for (int h = 0; h < heads; ++h) {
              float* v = expected.data() + (size_t(r) * heads + h) * dim;
              for (int i = 0; i < dims / 2; ++i) {
                const bool half = pairing == RopePairing::kHalf;
                const int a = half ? i : 2 * i;
                const int b = half ? i + dims / 2 : 2 * i + 1;
                const double angle = double(first + r) * std::pow(500000.0, -2.0 * i / dims);
                const double va = v[a];
                const double vb = v[b];
                v[a] = float(va * std::cos(angle) - vb * std::sin(angle));
                v[b] = float(vb * std::cos(angle) + va * std::sin(angle));
              }
            }
          }
          const std::string name = "rope " + std::to_string(dim) + " " + std::to_string(dims) +
                                   " at " + std::to_string(first);
          worst = std::max(worst, row_error(exact.get(), expected, dim));
          expect(row_error(exact.get(), expected, dim) < 1e-6, name + " exact");
          expect(row_error(reference.get(), expected, dim) < 1e-6, name + " reference");
          for (int r = 0; r < rows; ++r) {
            args.x = single.data() + size_t(r) * heads * dim;
            args.rows = 1;
            bench.step(first + r);
            cuda::rope_exact(args, bench.context);
          }
          bench.wait();
          expect(same_bits(single.get(), exact.get()), name + " row by row");
        }
      }
    }
  }
  std::printf("rope: worst relative error %.1e\n", worst);
}

void check_embedding(Bench& bench) {
  const int n = 300;
  for (const int k : {64, 577, 4096}) {
    const auto table = normal(size_t(n) * k);
    std::vector<__half> halves(table.size());
    std::vector<__nv_bfloat16> bf16(table.size());
    for (size_t i = 0; i < table.size(); ++i) {
      halves[i] = __float2half(table[i]);
      bf16[i] = __float2bfloat16(table[i]);
    }
    std::vector<int32_t> tokens(17);
    for (auto& token : tokens) token = uniform_int(0, n - 1);
    tokens[0] = n - 1;
    bench.tokens(tokens);
    Device<float> d32(table);
    Device<__half> d16(halves);
    Device<__nv_bfloat16> db16(bf16);
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      Device<float> out(tokens.size() * k), out2(tokens.size() * k);
      const void* data = type == DType::kF32   ? static_cast<void*>(d32.data())
                         : type == DType::kF16 ? static_cast<void*>(d16.data())
                                               : static_cast<void*>(db16.data());
      const auto rows = static_cast<int64_t>(tokens.size());
      cuda::embedding_exact({data, type, nullptr, out.data(), rows, n, k}, bench.context);
      cuda::embedding_reference({data, type, nullptr, out2.data(), rows, n, k}, bench.context);
      bench.wait();
      std::vector<float> expected;
      for (const int32_t token : tokens) {
        for (int i = 0; i < k; ++i) {
          const size_t at = size_t(token) * k + i;
          expected.push_back(type == DType::kF32   ? table[at]
                             : type == DType::kF16 ? __half2float(halves[at])
                                                   : __bfloat162float(bf16[at]));
        }
      }
      expect(same_bits(out.get(), expected), "embedding exact");
      expect(same_bits(out2.get(), expected), "embedding reference");
    }
  }
}

void check_tiles(Bench& bench) {
  const int n = 131;
  for (const int k : {64, 577, 2880}) {
    std::vector<int32_t> tokens(17);
    for (auto& token : tokens) token = uniform_int(0, n - 1);
    tokens[0] = n - 1;
    bench.tokens(tokens);
    const DType types[] = {DType::kP4, DType::kP8, DType::kF16, DType::kBF16, DType::kF32};
    for (int type = 0; type < 5; ++type) {
      const auto tile_type = static_cast<cuda::TileType>(type);
      // Any bytes make a table but for halves and floats that are no numbers.
      std::vector<uint8_t> rows(size_t(n) * cuda::packed_row_bytes(tile_type, k));
      for (auto& byte : rows) byte = uint8_t(uniform_int(0, 255) & 0xbb);
      std::vector<uint8_t> tiles(cuda::tile_bytes(tile_type, n, k));
      cuda::pack_tiles(tile_type, rows.data(), n, k, 0, cuda::strips_of(n), tiles.data());
      Device<uint8_t> device(tiles);
      Device<float> out(tokens.size() * k), out2(tokens.size() * k);
      const auto count = static_cast<int64_t>(tokens.size());
      cuda::embedding_tiles_exact({device.data(), types[type], nullptr, out.data(), count, n, k},
                                  bench.context);
      cuda::embedding_tiles_reference(
          {device.data(), types[type], nullptr, out2.data(), count, n, k}, bench.context);
      bench.wait();
      std::vector<float> expected(tokens.size() * k);
      for (size_t r = 0; r < tokens.size(); ++r) {
        cuda::unpack_tile_row(tile_type, tiles.data(), k, tokens[r], expected.data() + r * k);
      }
      const std::string name =
          "embedding tiles " + std::to_string(type) + " k " + std::to_string(k);
      expect(same_bits(out.get(), expected), name);
      expect(same_bits(out2.get(), expected), name + " reference");
    }
  }
}

// --- Sampling ---------------------------------------------------------------------------------

Pick cpu_pick(const float* logits, int n, double temperature, double uniform) {
  int best = 0;
  float highest = -INFINITY;
  float second = -INFINITY;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(logits[i])) return {-1 - i, 0};
    if (logits[i] > highest) {
      second = highest;
      highest = logits[i];
      best = i;
    } else if (logits[i] > second) {
      second = logits[i];
    }
  }
  Pick pick{best, n == 1 ? 0 : highest - second};
  if (temperature > 0) {
    double total = 0;
    for (int i = 0; i < n; ++i) total += std::exp((double(logits[i]) - highest) / temperature);
    double running = 0;
    for (int i = 0; i < n; ++i) {
      const double share = std::exp((double(logits[i]) - highest) / temperature);
      if (share > 0) pick.token = i;
      running += share;
      if (uniform * total < running) break;
    }
  }
  return pick;
}

// Whether a token may be drawn: its running sums enclose what is wanted, to rounding.
bool may_draw(const float* logits, int n, double temperature, double uniform, int token) {
  if (token < 0 || token >= n) return false;
  const float highest = *std::max_element(logits, logits + n);
  double total = 0;
  double before = 0;
  double after = 0;
  double own = 0;
  for (int i = 0; i < n; ++i) {
    const double share = std::exp((double(logits[i]) - highest) / temperature);
    if (i == token) own = share;
    if (i < token) before += share;
    if (i <= token) after += share;
    total += share;
  }
  const double slack = 1e-12 * total;
  return own > 0 && before <= uniform * total + slack && uniform * total < after + slack;
}

void check_sample(Bench& bench, bool small) {
  const std::vector<int> sizes =
      small ? std::vector<int>{1, 2049}
            : std::vector<int>{1, 2, 31, 2047, 2048, 2049, 32000, 128256, 151936, 262144, 600001};
  int other_draws = 0;
  for (const int n : sizes) {
    const int rows = n > 200000 ? 1 : 3;
    for (int test = 0; test < (small ? 4 : 8); ++test) {
      auto logits = normal(size_t(rows) * n, 4);
      if (test == 1) {  // ties
        for (int i = 0; i < 5; ++i) logits[uniform_int(0, n - 1)] = 50;
      }
      if (test == 2) {
        logits[uniform_int(0, n - 1)] = NAN;
        logits[uniform_int(0, n - 1)] = INFINITY;
        logits[uniform_int(0, n - 1)] = -INFINITY;
      }
      if (test == 3) std::fill(logits.begin(), logits.end(), -2.5F);
      Device<float> device(logits);
      for (const double temperature : {0.0, 1.0, 0.05, 3.0}) {
        const double uniform = test == 4   ? 0.0
                               : test == 5 ? 0x1.fffffffffffffp-1
                                           : uniform_int(0, 1 << 30) / 1073741825.0;
        Device<Pick> exact(rows), again(rows), reference(rows);
        bench.step(0, temperature, uniform);
        SampleArgs args{device.data(), exact.data(), rows, n, 0, 0};
        cuda::sample_exact(args, bench.context);
        args.picks = again.data();
        cuda::sample_exact(args, bench.context);
        const bool slow = temperature > 0 && (n > 5000 || test > 3);
        args.picks = reference.data();
        if (!slow) cuda::sample_reference(args, bench.context);
        bench.wait();
        const auto a = exact.get();
        const auto b = reference.get();
        expect(same_bits(a, again.get()), "sample twice");
        for (int r = 0; r < rows; ++r) {
          const Pick want = cpu_pick(logits.data() + size_t(r) * n, n, temperature, uniform);
          const std::string name = "sample n " + std::to_string(n) + " test " +
                                   std::to_string(test) + " t " + std::to_string(temperature) +
                                   " row " + std::to_string(r) + ": " + std::to_string(a[r].token) +
                                   " for " + std::to_string(want.token);
          const bool same = a[r].token == want.token ||
                            (temperature > 0 && may_draw(logits.data() + size_t(r) * n, n,
                                                         temperature, uniform, a[r].token));
          other_draws += a[r].token != want.token;
          expect(same && a[r].margin == want.margin, name);
          if (!slow) {
            expect(b[r].token == want.token && b[r].margin == want.margin, name + " reference");
          }
        }
      }
    }
  }
  std::printf("sample: %d draws within rounding of a boundary differ from the host's\n",
              other_draws);
}

// --- Attention --------------------------------------------------------------------------------

struct Shape {
  int heads, kv_heads, dim;
};

struct Sequence {
  Shape shape;
  int positions;
  float scale;
  std::vector<float> q, k, v;
};

Sequence make_sequence(Shape shape, int positions) {
  Sequence s{shape, positions, 1 / std::sqrt(float(shape.dim)), {}, {}, {}};
  s.q = normal(size_t(positions) * shape.heads * shape.dim, 2.5F);
  s.k = normal(size_t(positions) * shape.kv_heads * shape.dim);
  s.v = normal(size_t(positions) * shape.kv_heads * shape.dim);
  return s;
}

enum class Kind { kReference, kExact, kFast, kWgmma };

struct Heads {  // of rope_attention
  bool fused = false, norm = false;
  int dims = 0;
  RopePairing pairing = RopePairing::kHalf;
};

struct Result {
  std::vector<float> out;
  std::vector<char> keys, values;
};

// Runs a sequence in passes of `chunks` rows (the last ones repeat the last number).
Result run_sequence(Bench& bench, const Sequence& s, DType type, int64_t capacity, Kind kind,
                    const std::vector<int>& chunks, const Heads* rope = nullptr) {
  const Shape& shape = s.shape;
  const size_t element = type == DType::kF16 ? 2 : 4;
  const size_t cache_bytes = size_t(shape.kv_heads) * capacity * shape.dim * element;
  Device<float> q(s.q), k(s.k), v(s.v), out(s.q.size());
  Device<char> keys(cache_bytes), values(cache_bytes);
  std::vector<float> weights(size_t(shape.dim) * 2);
  for (int i = 0; i < 2 * shape.dim; ++i) weights[i] = 0.5F + float(i % 7) * 0.2F;
  Device<float> norms(weights);
  size_t at = 0;
  for (int64_t first = 0; first < s.positions;) {
    const int64_t rows =
        std::min<int64_t>(chunks[std::min(at++, chunks.size() - 1)], s.positions - first);
    bench.step(first);
    RopeAttentionArgs args;
    AttentionArgs& a = args.attention;
    a.q = q.data() + first * shape.heads * shape.dim;
    a.k = k.data() + first * shape.kv_heads * shape.dim;
    a.v = v.data() + first * shape.kv_heads * shape.dim;
    a.cache_k = keys.data();
    a.cache_v = values.data();
    a.kv_type = type;
    a.out = out.data() + first * shape.heads * shape.dim;
    a.rows = rows;
    a.heads = shape.heads;
    a.kv_heads = shape.kv_heads;
    a.head_dim = shape.dim;
    a.capacity = capacity;
    a.first_position = -1;  // stale on the host
    a.scale = s.scale;
    if (rope != nullptr) {
      args.q_norm = rope->norm ? norms.data() : nullptr;
      args.k_norm = rope->norm ? norms.data() + shape.dim : nullptr;
      args.epsilon = 1e-6F;
      args.rope_dims = rope->dims;
      args.rope_base = 10000;
      args.pairing = rope->pairing;
    }
    if (rope != nullptr && !rope->fused) {
      auto* qs = const_cast<float*>(a.q);
      auto* ks = const_cast<float*>(a.k);
      if (rope->norm) {
        cuda::rms_norm_exact({qs, norms.data(), qs, rows * shape.heads, shape.dim, 1e-6F},
                             bench.context);
        cuda::rms_norm_exact(
            {ks, norms.data() + shape.dim, ks, rows * shape.kv_heads, shape.dim, 1e-6F},
            bench.context);
      }
      if (rope->dims > 0) {
        cuda::rope_exact({qs, rows, shape.heads, shape.dim, rope->dims, -1, 10000, rope->pairing},
                         bench.context);
        cuda::rope_exact(
            {ks, rows, shape.kv_heads, shape.dim, rope->dims, -1, 10000, rope->pairing},
            bench.context);
      }
    }
    const bool fused = rope != nullptr && rope->fused;
    if (kind == Kind::kReference) {
      cuda::attention_reference(a, bench.context);
    } else if (kind == Kind::kFast) {
      fused ? cuda::rope_attention_fast_mma(args, bench.context)
            : cuda::attention_fast_mma(a, bench.context);
    } else if (kind == Kind::kWgmma) {
      fused ? cuda::rope_attention_fast_wgmma(args, bench.context)
            : cuda::attention_fast_wgmma(a, bench.context);
    } else if (type == DType::kF16) {
      fused ? cuda::rope_attention_exact_mma(args, bench.context)
            : cuda::attention_exact_mma(a, bench.context);
    } else {
      fused ? cuda::rope_attention_exact_simt(args, bench.context)
            : cuda::attention_exact_simt(a, bench.context);
    }
    first += rows;
  }
  bench.wait();
  return {out.get(), keys.get(), values.get()};
}

// Row by row on the host, in float64, from what lies in an f16 or f32 cache.
std::vector<float> cpu_attention(const Sequence& s, DType type) {
  const auto stored = [&](float x) {
    return type == DType::kF16 ? double(__half2float(__float2half_rn(x))) : double(x);
  };
  const int dim = s.shape.dim;
  std::vector<float> out(s.q.size());
  for (int r = 0; r < s.positions; ++r) {
    for (int h = 0; h < s.shape.heads; ++h) {
      const int kv = h / (s.shape.heads / s.shape.kv_heads);
      const float* q = s.q.data() + (size_t(r) * s.shape.heads + h) * dim;
      std::vector<double> scores(r + 1), total(dim);
      double largest = -INFINITY;
      for (int p = 0; p <= r; ++p) {
        const float* k = s.k.data() + (size_t(p) * s.shape.kv_heads + kv) * dim;
        for (int i = 0; i < dim; ++i) scores[p] += double(q[i]) * stored(k[i]);
        scores[p] *= s.scale;
        largest = std::max(largest, scores[p]);
      }
      double sum = 0;
      for (int p = 0; p <= r; ++p) {
        const double weight = std::exp(scores[p] - largest);
        sum += weight;
        const float* v = s.v.data() + (size_t(p) * s.shape.kv_heads + kv) * dim;
        for (int i = 0; i < dim; ++i) total[i] += weight * stored(v[i]);
      }
      for (int i = 0; i < dim; ++i) {
        out[(size_t(r) * s.shape.heads + h) * dim + i] = float(total[i] / sum);
      }
    }
  }
  return out;
}

std::vector<int> random_chunks(int positions, int most) {
  std::vector<int> chunks;
  for (int sum = 0; sum < positions;) {
    chunks.push_back(uniform_int(1, most));
    sum += chunks.back();
  }
  return chunks;
}

void check_attention(Bench& bench, bool small) {
  double worst_exact = 0;
  double worst_f32 = 0;
  double worst_fast = 0;
  double worst_reference = 0;
  const std::vector<Shape> shapes =
      small ? std::vector<Shape>{{4, 2, 64}, {9, 3, 48}, {2, 1, 256}}
            : std::vector<Shape>{{32, 8, 128}, {9, 3, 64},  {8, 8, 128}, {4, 1, 256},  {40, 8, 80},
                                 {6, 2, 48},   {14, 2, 64}, {3, 3, 16},  {16, 1, 128}, {5, 5, 72}};
  for (const Shape& shape : shapes) {
    const std::string name = "attention " + std::to_string(shape.heads) + "/" +
                             std::to_string(shape.kv_heads) + "x" + std::to_string(shape.dim);
    {  // The reference against the host.
      const Sequence s = make_sequence(shape, small ? 5 : 70);
      for (const DType type : {DType::kF32, DType::kF16}) {
        const auto r = run_sequence(bench, s, type, 80, Kind::kReference, {64, 1, 2});
        const double error = row_error(r.out, cpu_attention(s, type), shape.dim);
        worst_reference = std::max(worst_reference, error);
        expect(error < 2e-6, name + " reference " + std::to_string(error));
      }
    }
    for (const int positions :
         small ? std::vector<int>{75} : std::vector<int>{1, 17, 130, 1500, 3000}) {
      if (positions > 2000 && shape.heads * shape.dim > 2048) continue;
      const Sequence s = make_sequence(shape, positions);
      const std::string at = name + " " + std::to_string(positions) + " ";
      const int capacity = positions + uniform_int(0, 90);
      const auto reference =
          run_sequence(bench, s, DType::kF16, capacity, Kind::kReference, {positions});
      const auto whole = run_sequence(bench, s, DType::kF16, capacity, Kind::kExact, {positions});
      const double error = row_error(whole.out, reference.out, shape.dim);
      worst_exact = std::max(worst_exact, error);
      expect(error < 2e-5, at + "exact " + std::to_string(error));
      expect(same_bits(whole.keys, reference.keys) && same_bits(whole.values, reference.values),
             at + "cache");
      const auto again = run_sequence(bench, s, DType::kF16, capacity, Kind::kExact, {positions});
      expect(same_bits(whole.out, again.out), at + "exact twice");
      // Any chunks, another capacity: the same bits. Decode in one go costs a launch a row.
      std::vector<std::vector<int>> cuts = {
          random_chunks(positions, 17), random_chunks(positions, 400), {16}};
      if (positions < 200 || (!small && shape.dim <= 64)) cuts.push_back({1});
      cuts.push_back({positions > 100 ? positions - 40 : 1, 1, 2, 3, 4, 5, 1});
      for (const auto& chunks : cuts) {
        const auto other =
            run_sequence(bench, s, DType::kF16, capacity + 1000, Kind::kExact, chunks);
        expect(same_bits(other.out, whole.out),
               at + "exact in chunks from " + std::to_string(chunks[0]));
      }
      for (const Kind kind : {Kind::kFast, Kind::kWgmma}) {
        if (shape.dim != 64 && shape.dim != 128) break;
        const auto fast = run_sequence(bench, s, DType::kF16, capacity, kind, {positions});
        const double fast_error = row_error(fast.out, reference.out, shape.dim);
        worst_fast = std::max(worst_fast, fast_error);
        expect(fast_error < 5e-3, at + "fast " + std::to_string(fast_error));
        const auto twice = run_sequence(bench, s, DType::kF16, capacity, kind, {positions});
        expect(same_bits(fast.out, twice.out), at + "fast twice");
        const auto chunked = run_sequence(bench, s, DType::kF16, capacity, kind, {33, 128, 200});
        const double chunk_error = row_error(chunked.out, reference.out, shape.dim);
        expect(chunk_error < 5e-3, at + "fast in chunks " + std::to_string(chunk_error));
      }
      if (positions <= 1500) {
        const auto r32 =
            run_sequence(bench, s, DType::kF32, capacity, Kind::kReference, {positions});
        const auto e32 = run_sequence(bench, s, DType::kF32, capacity, Kind::kExact, {positions});
        const double error32 = row_error(e32.out, r32.out, shape.dim);
        worst_f32 = std::max(worst_f32, error32);
        expect(error32 < 1e-5, at + "exact f32 " + std::to_string(error32));
        const auto chunked = run_sequence(bench, s, DType::kF32, capacity + 77, Kind::kExact,
                                          random_chunks(positions, 17));
        expect(same_bits(chunked.out, e32.out), at + "exact f32 in chunks");
      }
      if (positions > 200) continue;
      for (const bool norm : {false, true}) {
        for (const auto pairing : {RopePairing::kHalf, RopePairing::kAdjacent}) {
          Heads heads{false, norm, norm ? shape.dim : shape.dim / 2, pairing};
          for (const DType type : {DType::kF16, DType::kF32}) {
            heads.fused = false;
            const auto apart = run_sequence(bench, s, type, capacity, Kind::kExact, {4}, &heads);
            heads.fused = true;
            for (const std::vector<int>& chunks : {std::vector<int>{positions}, {1, 2, 3}}) {
              const auto fused =
                  run_sequence(bench, s, type, capacity, Kind::kExact, chunks, &heads);
              expect(same_bits(fused.out, apart.out) && same_bits(fused.keys, apart.keys) &&
                         same_bits(fused.values, apart.values),
                     at + "rope_attention");
            }
          }
        }
      }
    }
  }
  std::printf(
      "attention: worst relative error: reference %.1e (host), exact f16 %.1e, exact f32 "
      "%.1e, fast %.1e\n",
      worst_reference, worst_exact, worst_f32, worst_fast);
}

// Long contexts: a few rows after a cache of random values; exact in splits against many rows.
void check_long(Bench& bench) {
  const Shape shape{32, 8, 128};
  const int64_t positions = 40000;
  const size_t cache = size_t(shape.kv_heads) * positions * shape.dim;
  const auto values = normal(cache);
  std::vector<__half> halves(cache);
  for (size_t i = 0; i < cache; ++i) halves[i] = __float2half(values[i]);
  Device<__half> keys(halves), vals(halves);
  const int rows = 20;
  Device<float> q(normal(size_t(rows) * 32 * 128, 2.5F)), kv(normal(size_t(rows) * 8 * 128));
  Device<float> out(size_t(rows) * 32 * 128), reference(size_t(rows) * 32 * 128),
      split(size_t(rows) * 32 * 128);
  for (const int64_t first :
       {int64_t{1015}, int64_t{2040}, int64_t{8185}, int64_t{32760}, int64_t{39980}}) {
    const auto run = [&](auto function, float* to, int from, int count) {
      bench.step(first + from);
      AttentionArgs a;
      a.q = q.data() + size_t(from) * 32 * 128;
      a.k = kv.data() + size_t(from) * 8 * 128;
      a.v = a.k;
      a.cache_k = keys.data();
      a.cache_v = vals.data();
      a.kv_type = DType::kF16;
      a.out = to + size_t(from) * 32 * 128;
      a.rows = count;
      a.heads = 32;
      a.kv_heads = 8;
      a.head_dim = 128;
      a.capacity = positions;
      a.scale = 0.088388F;
      function(a, bench.context);
    };
    run(cuda::attention_exact_mma, out.data(), 0, rows);
    run(cuda::attention_reference, reference.data(), 0, rows);
    bench.wait();
    const auto whole = out.get();
    const double error = row_error(whole, reference.get(), 128);
    expect(error < 2e-5, "long exact " + std::to_string(error));
    for (const int step : {1, 3, 8, 16}) {
      split.poison();
      for (int from = 0; from < rows; from += step) {
        run(cuda::attention_exact_mma, split.data(), from, std::min(step, rows - from));
      }
      bench.wait();
      expect(same_bits(split.get(), whole),
             "long exact at " + std::to_string(first) + " by " + std::to_string(step));
    }
  }
}

// --- Times ------------------------------------------------------------------------------------

// The median time of one of `count` repetitions inside a graph, in microseconds.
double time_us(Bench& bench, int count, const std::function<void(int)>& one, int replays = 15) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStream_t stream = bench.context.queue.stream;
  bench.wait();
  cuda_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < count; ++i) one(i);
  cuda_ok(cudaStreamEndCapture(stream, &graph));
  cuda_ok(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cuda_ok(cudaEventCreate(&begin));
  cuda_ok(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < replays + 3; ++i) {
    cuda_ok(cudaEventRecord(begin, stream));
    cuda_ok(cudaGraphLaunch(exec, stream));
    cuda_ok(cudaEventRecord(end, stream));
    cuda_ok(cudaEventSynchronize(end));
    float ms = 0;
    cuda_ok(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 3) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  return times[times.size() / 2] * 1000.0 / count;
}

__global__ void fill_halves(__half* data, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x) {
    const uint32_t hash = static_cast<uint32_t>(i * 2654435761U) ^ static_cast<uint32_t>(i >> 13);
    data[i] = __float2half(static_cast<float>((hash * 2246822519U) >> 8) / 8388608.0F - 1.0F);
  }
}

void time_rows(Bench& bench) {
  const int width = 14336;
  const int most = 2048;
  Device<float> x(normal(size_t(most) * width)), y(normal(size_t(most) * width)),
      out(size_t(most) * width);
  Device<float> w(normal(width));
  std::printf("\n| op | shape | us |\n|---|---|---|\n");
  for (const int rows : {1, 16, 2048}) {
    const int count = rows > 100 ? 8 : 64;
    const auto line = [&](const char* op, int k, const std::function<void(int)>& one) {
      std::printf("| %s | %d x %d | %.2f |\n", op, rows, k, time_us(bench, count, one));
    };
    line("rms_norm", 4096, [&](int) {
      cuda::rms_norm_exact({x.data(), w.data(), out.data(), rows, 4096, 1e-5F}, bench.context);
    });
    line("add_rms_norm", 4096, [&](int) {
      cuda::add_rms_norm_exact({x.data(), y.data(), w.data(), out.data(), rows, 4096, 1e-5F},
                               bench.context);
    });
    line("swiglu", 14336, [&](int) {
      cuda::swiglu_exact({x.data(), y.data(), out.data(), rows, 14336}, bench.context);
    });
    line("add", 4096, [&](int) {
      cuda::add_exact({x.data(), y.data(), out.data(), rows, 4096}, bench.context);
    });
    line("rope", 4096, [&](int) {
      cuda::rope_exact({out.data(), rows, 32, 128, 128, 0, 10000, RopePairing::kHalf},
                       bench.context);
    });
  }
  for (const int n : {32000, 128256, 262144}) {
    Device<float> logits(normal(n, 4));
    Device<Pick> pick(1);
    for (const double temperature : {0.0, 0.8}) {
      bench.step(0, temperature, 0.37);
      const double us = time_us(bench, 32, [&](int) {
        cuda::sample_exact({logits.data(), pick.data(), 1, n, 0, 0}, bench.context);
      });
      std::printf("| sample t=%.1f | %d | %.2f |\n", temperature, n, us);
    }
  }
}

void time_attention(Bench& bench, bool profile) {
  const Shape shape{32, 8, 128};
  const int layers = 32;
  const int64_t capacity = 65536 + 64;
  const size_t cache = size_t(shape.kv_heads) * capacity * shape.dim;
  Device<__half> keys(cache * layers), values(cache * layers);
  fill_halves<<<1024, 256>>>(keys.data(), cache * layers);
  fill_halves<<<1024, 256>>>(values.data(), cache * layers);
  cuda_ok(cudaDeviceSynchronize());
  const int most = 8192;
  Device<float> q(normal(size_t(most) * 32 * 128)), k(normal(size_t(most) * 8 * 128)),
      v(normal(size_t(most) * 8 * 128)), out(size_t(most) * 32 * 128);
  const auto args_of = [&](int layer, int rows) {
    RopeAttentionArgs args;
    AttentionArgs& a = args.attention;
    a.q = q.data();
    a.k = k.data();
    a.v = v.data();
    a.cache_k = keys.data() + cache * layer;
    a.cache_v = values.data() + cache * layer;
    a.kv_type = DType::kF16;
    a.out = out.data();
    a.rows = rows;
    a.heads = 32;
    a.kv_heads = 8;
    a.head_dim = 128;
    a.capacity = capacity;
    a.scale = 0.088388F;
    args.rope_dims = 128;
    return args;
  };
  if (profile) {
    for (const int64_t context : {256, 1024, 16384}) {
      for (const int rows : {1, 4, 8, 16}) {
        bench.step(context - 1);
        for (int layer = 0; layer < 2; ++layer) {
          cuda::rope_attention_exact_mma(args_of(layer, rows), bench.context);
        }
      }
    }
    bench.wait();
    return;
  }
  std::printf(
      "\nrope_attention exact_mma, 32/8 heads of 128, f16, 32 layers in turn, us a layer "
      "(GB/s of cache)\n| context | 1 row | 2 | 4 | 8 | 16 | 1 row, no overlap |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const int64_t context : {256, 1024, 4096, 16384, 65536}) {
    std::printf("| %lld |", static_cast<long long>(context));
    bench.step(context - 1);
    const auto one = [&](int rows) {
      return time_us(bench, layers, [&](int layer) {
        cuda::rope_attention_exact_mma(args_of(layer, rows), bench.context);
      });
    };
    for (const int rows : {1, 2, 4, 8, 16}) {
      const double us = one(rows);
      std::printf(" %.2f (%.0f) |", us, double(context) * 8 * 128 * 4 / us / 1000);
    }
    bench.context.queue.overlap = false;
    std::printf(" %.2f |\n", one(1));
    bench.context.queue.overlap = true;
  }
  std::printf(
      "\nPrefill, 32/8 heads of 128, first position 0 unless said, TFLOP/s counting the "
      "causal half\n| kernel | rows | at | us | TFLOP/s |\n|---|---|---|---|---|\n");
  for (const int rows : {512, 2048, 8192}) {
    for (const int64_t first : {0, 8192}) {
      bench.step(first);
      const double flops =
          4.0 * 32 * 128 * (double(rows) * double(first) + double(rows) * (rows + 1) / 2);
      const auto line = [&](const char* name, double us) {
        std::printf("| %s | %d | %lld | %.1f | %.0f |\n", name, rows, static_cast<long long>(first),
                    us, flops / us / 1e6);
      };
      line("fast_mma", time_us(bench, 4, [&](int layer) {
             cuda::attention_fast_mma(args_of(layer, rows).attention, bench.context);
           }));
      line("fast_wgmma", time_us(bench, 4, [&](int layer) {
             cuda::attention_fast_wgmma(args_of(layer, rows).attention, bench.context);
           }));
      line("rope, fast_wgmma", time_us(bench, 4, [&](int layer) {
             cuda::rope_attention_fast_wgmma(args_of(layer, rows), bench.context);
           }));
      line("exact_mma", time_us(
                            bench, 2,
                            [&](int layer) {
                              cuda::attention_exact_mma(args_of(layer, rows).attention,
                                                        bench.context);
                            },
                            5));
    }
  }
}

}  // namespace
}  // namespace reckon::kernels

int main(int argc, char** argv) {
  using namespace reckon::kernels;
  const std::string mode = argc > 1 ? argv[1] : "check";
  Bench bench;
  if (mode == "time") {
    cudaDeviceProp properties{};
    cuda_ok(cudaGetDeviceProperties(&properties, 0));
    std::printf("%s\n", properties.name);
    time_rows(bench);
    time_attention(bench, false);
    return 0;
  }
  if (mode == "profile") {
    time_attention(bench, true);
    return 0;
  }
  const bool small = mode == "small";
  for (const bool overlap : {true, false}) {
    if (small && !overlap) continue;
    bench.context.queue.overlap = overlap;
    std::printf("overlap %s\n", overlap ? "on" : "off");
    check_norms(bench, small);
    check_elements(bench, small);
    if (!small) check_rope(bench);
    check_embedding(bench);
    check_tiles(bench);
    check_sample(bench, small);
    if (overlap) check_attention(bench, small);
    if (!small) check_long(bench);
  }
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
