// Times the loops of bounds_loops.h. Each repetition is cut into many tasks, so that a thread that
// loses its core for a while does not hold up the others.
#include "kernels/cpu/bounds.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "kernels/cpu/bounds_loops.h"
#include "tensor/arena.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kReadTaskBytes = 4 << 20;
constexpr int64_t kMultiplyTasksPerThread = 8;
constexpr uint64_t kUnknownCacheBytes = 64 << 20;  // where the system does not say

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

uint64_t buffer_bytes(uint64_t available_bytes, const BoundsOptions& options) {
  constexpr auto kBlock = static_cast<uint64_t>(kReadBlock);
  uint64_t bytes = options.buffer_bytes;
  if (bytes == 0) {
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    bytes = 8 * (cache > 0 ? static_cast<uint64_t>(cache) : kUnknownCacheBytes);
    bytes = std::min(bytes, available_bytes / 2);
  }
  return std::max(bytes / kBlock * kBlock, kBlock);
}

// ---- reading ----

class Reader {
 public:
  // `memory` is released by the caller. Fills it, each page by one of the threads.
  Reader(void* memory, uint64_t bytes, bool avx2)
      : memory_(static_cast<char*>(memory)),
        bytes_(static_cast<int64_t>(bytes)),
        loop_(avx2 ? read_avx2 : read_scalar) {}

  void fill(ThreadPool& threads) const {
    each_part(threads, [](char* part, int64_t bytes) {
      auto* words = reinterpret_cast<uint64_t*>(part);
      for (int64_t i = 0; i < bytes / 8; ++i) {
        words[i] = static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15;
      }
    });
  }

  // Bytes a second of each of the passes.
  [[nodiscard]] std::vector<double> rates(ThreadPool& threads, int repetitions) {
    std::vector<double> rates;
    for (int i = -1; i < repetitions; ++i) {  // -1: a warm-up
      const double seconds = seconds_of([&] {
        each_part(threads, [this](const char* part, int64_t bytes) {
          sum_.fetch_add(loop_(part, bytes), std::memory_order_relaxed);
        });
      });
      if (i >= 0) rates.push_back(static_cast<double>(bytes_) / seconds);
    }
    return rates;
  }

 private:
  template <typename Work>
  void each_part(ThreadPool& threads, const Work& work) const {
    const int64_t parts = (bytes_ + kReadTaskBytes - 1) / kReadTaskBytes;
    threads.parallel_for(parts, [&](int64_t part) {
      const int64_t start = part * kReadTaskBytes;
      work(memory_ + start, std::min(kReadTaskBytes, bytes_ - start));
    });
  }

  char* memory_;
  int64_t bytes_;
  uint64_t (*loop_)(const void*, int64_t);
  std::atomic<uint64_t> sum_ = 0;
};

Status measure_reads(std::vector<Bound>& bounds, ThreadPool& threads, bool avx2, uint64_t bytes,
                     int repetitions) {
  const auto release = [bytes](void* memory) { host_memory().release(memory, bytes); };
  auto taken = host_memory().allocate(bytes);
  if (!taken.ok()) {
    return failed("a buffer of " + format_bytes(bytes) +
                  " to measure the read bandwidth: " + taken.error().message);
  }
  const std::unique_ptr<void, decltype(release)> memory(*taken, release);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first_page = (reinterpret_cast<uintptr_t>(*taken) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(*taken) + bytes;
  if (end > first_page) {  // large pages where the system has them: a wish, not a need
    static_cast<void>(
        madvise(reinterpret_cast<void*>(first_page), end - first_page, MADV_HUGEPAGE));
  }
  Reader reader(*taken, bytes, avx2);
  reader.fill(threads);
  const std::string size = format_bytes_short(bytes);
  bounds.push_back(bound_of("read", BoundKind::kRead, reader.rates(threads, repetitions),
                            size + ", " + counted(threads.threads(), "thread")));
  if (threads.threads() > 1) {
    ThreadPool one(1);
    bounds.push_back(bound_of("read_1_thread", BoundKind::kRead, reader.rates(one, repetitions),
                              size + ", 1 thread"));
  }
  return {};
}

// ---- multiplying ----

struct LoopRow {
  const char* name;
  const char* feature;  // of the device; null: none needed
  MultiplyLoop loop;
  int64_t operations;    // of one round
  int64_t instructions;  // of one round; 0: the compiler's business
  bool floats;
  const char* what;  // "vfmadd"
};

constexpr LoopRow kLoops[] = {
    {"fma_f32_scalar", nullptr, fma_f32_scalar, 2L * 8, 0, true, "multiply, add"},
    {"fma_f32_avx2", "fma", fma_f32_avx2, 2L * 8 * kAvx2Accumulators, kAvx2Accumulators, true,
     "vfmadd"},
    {"madd_i16_avx2", "avx2", madd_i16_avx2, 2L * 16 * kAvx2Accumulators, 2 * kAvx2Accumulators,
     false, "vpmaddwd, vpaddd"},
    {"madd_i8_avx2", "avx2", madd_i8_avx2, 2L * 32 * kAvx2Accumulators, 3 * kAvx2Accumulators,
     false, "vpmaddubsw, vpmaddwd, vpaddd"},
    {"fma_f32_avx512", "avx512f", fma_f32_avx512, 2L * 16 * kAvx512Accumulators,
     kAvx512Accumulators, true, "vfmadd of 512 bits"},
    {"dot_i16_avx512vnni", "avx512vnni", dot_i16_avx512vnni, 2L * 32 * kAvx512Accumulators,
     kAvx512Accumulators, false, "vpdpwssd of 512 bits"},
    {"dot_i8_avx512vnni", "avx512vnni", dot_i8_avx512vnni, 2L * 64 * kAvx512Accumulators,
     kAvx512Accumulators, false, "vpdpbusd of 512 bits"},
    {"dot_bf16_avx512", "avx512bf16", dot_bf16_avx512, 2L * 32 * kAvx512Accumulators,
     kAvx512Accumulators, true, "vdpbf16ps of 512 bits"},
    {"dot_bf16_amx", "amx_bf16", dot_bf16_amx, 2L * 4 * 16 * 16 * 32, 4, true, "tdpbf16ps"},
};

// Which instruction sets the files of the loops were compiled for (cmake/modules.cmake).
bool runs(const LoopRow& row, const Device& device, const std::vector<std::string>& features) {
  if (row.feature == nullptr) return device.best_isa == Isa::kScalar;
  const std::string_view feature = row.feature;
  const Isa needed = feature.starts_with("amx")      ? Isa::kAmx
                     : feature.starts_with("avx512") ? Isa::kAvx512
                                                     : Isa::kAvx2;
  return device.best_isa >= needed && std::ranges::find(features, row.feature) != features.end();
}

struct Operands {
  alignas(64) std::array<float, 16> x_floats, y_floats;
  alignas(64) std::array<uint32_t, 16> x_words, y_words;
};

Operands random_operands() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0.5F, 1.0F);
  Operands operands;
  for (size_t i = 0; i < operands.x_floats.size(); ++i) {
    operands.x_floats[i] = uniform(random);
    operands.y_floats[i] = i % 2 == 0 ? uniform(random) : -uniform(random);
    operands.x_words[i] = static_cast<uint32_t>(random()) | 0x01010101;
    operands.y_words[i] = static_cast<uint32_t>(random()) | 0x01010101;
  }
  return operands;
}

// Seconds that all threads together need for `iterations` rounds in each of their tasks.
double time_loop(const LoopRow& row, const Operands& operands, ThreadPool& threads,
                 int64_t iterations, std::atomic<uint64_t>& kept) {
  const void* x = row.floats ? static_cast<const void*>(operands.x_floats.data())
                             : static_cast<const void*>(operands.x_words.data());
  const void* y = row.floats ? static_cast<const void*>(operands.y_floats.data())
                             : static_cast<const void*>(operands.y_words.data());
  return seconds_of([&] {
    threads.parallel_for(threads.threads() * kMultiplyTasksPerThread, [&](int64_t) {
      if (row.loop(x, y, iterations) != 0) kept.fetch_add(1, std::memory_order_relaxed);
    });
  });
}

// Rounds a second of all threads together, a repetition each.
std::vector<double> round_rates(const LoopRow& row, const Operands& operands, ThreadPool& threads,
                                const BoundsOptions& options) {
  std::atomic<uint64_t> kept = 0;
  const double wanted = options.repetition_ms / 1e3;
  int64_t iterations = 64;
  double seconds = time_loop(row, operands, threads, iterations, kept);
  while (seconds < wanted / 4 && iterations < int64_t{1} << 40) {
    iterations *= 4;
    seconds = time_loop(row, operands, threads, iterations, kept);
  }
  const double scale = wanted / std::max(seconds, 1e-9);
  iterations = std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(iterations) * std::min(scale, 64.0)));
  const auto rounds = static_cast<double>(threads.threads() * kMultiplyTasksPerThread * iterations);
  std::vector<double> rates;
  for (int i = 0; i < options.repetitions; ++i) {
    rates.push_back(rounds / time_loop(row, operands, threads, iterations, kept));
  }
  return rates;
}

Bound measure_clock(const Operands& operands, ThreadPool& threads, const BoundsOptions& options) {
  constexpr LoopRow kRow{"clock", nullptr, clock_chain, 0, kClockChain, false, ""};
  std::vector<double> rates = round_rates(kRow, operands, threads, options);
  for (double& rate : rates) rate *= static_cast<double>(kClockChain) / threads.threads();
  return bound_of(kRow.name, BoundKind::kClock, std::move(rates),
                  "a chain of additions, " + counted(threads.threads(), "thread"));
}

// "vpdpbusd of 512 bits, 2 threads, 1.97 a cycle": `clock` is that of a core.
Bound measure_loop(const LoopRow& row, const Operands& operands, ThreadPool& threads,
                   const BoundsOptions& options, double clock) {
  std::vector<double> rates = round_rates(row, operands, threads, options);
  for (double& rate : rates) rate *= static_cast<double>(row.operations);
  Bound bound = bound_of(row.name, BoundKind::kMultiply, std::move(rates),
                         std::string(row.what) + ", " + counted(threads.threads(), "thread"));
  if (row.instructions > 0) {
    const double rounds = bound.value / static_cast<double>(row.operations);
    bound.detail += fmt::format(", {:.2f} a cycle", rounds * static_cast<double>(row.instructions) /
                                                        (clock * threads.threads()));
  }
  return bound;
}

}  // namespace

uint64_t read_scalar(const void* memory, int64_t bytes) {
  const auto* words = static_cast<const uint64_t*>(memory);
  std::array<uint64_t, 8> sums = {};
  for (int64_t i = 0; i < bytes / 8; i += 8) {
    for (int64_t j = 0; j < 8; ++j) sums[static_cast<size_t>(j)] += words[i + j];
  }
  uint64_t sum = 0;
  for (const uint64_t part : sums) sum += part;
  return sum;
}

double clock_chain(const void* x, const void* y, int64_t iterations) {
  const uint64_t a = *static_cast<const uint64_t*>(x);
  const uint64_t b = *static_cast<const uint64_t*>(y);
  uint64_t value = a;
  for (int64_t i = 0; i < iterations; ++i) {
    for (int j = 0; j < kClockChain / 2; ++j) value = (value + a) ^ b;
  }
  return static_cast<double>(value);
}

// Sums that start apart stay apart: equal ones a compiler would keep as one.
double fma_f32_scalar(const void* x, const void* y, int64_t iterations) {
  const auto* a = static_cast<const float*>(x);
  const auto* b = static_cast<const float*>(y);
  std::array<float, 8> sums = {};
  std::array<float, 8> values;
  std::copy_n(a, values.size(), values.begin());
  const volatile float factor = b[0];
  for (int64_t i = 0; i < iterations; ++i) {
    const float f = factor;
    for (size_t j = 0; j < sums.size(); ++j) sums[j] += values[j] * f;
  }
  double total = 0;
  for (const float sum : sums) total += static_cast<double>(sum);
  return total;
}

Result<std::vector<Bound>> measure_bounds(const Device& device, uint64_t available_bytes,
                                          const BoundsOptions& options) {
  RECKON_CHECK(options.repetitions >= 1);
  ThreadPool threads(options.threads);
  std::vector<Bound> bounds;
  TRY(measure_reads(bounds, threads, device.best_isa >= Isa::kAvx2,
                    buffer_bytes(available_bytes, options), options.repetitions));
  const std::vector<std::string> features = split(device.features, ' ');
  const Operands operands = random_operands();
  bounds.push_back(measure_clock(operands, threads, options));
  const double clock = bounds.back().value;
  for (const LoopRow& row : kLoops) {
    if (runs(row, device, features)) {
      bounds.push_back(measure_loop(row, operands, threads, options, clock));
    }
  }
  return bounds;
}

}  // namespace reckon::kernels::cpu
