// Micro-benchmarks of every kernel variant that this machine can run, on the shapes of SmolLM2-135M
// (hidden 576, 9 query and 3 KV heads of 64, MLP 1536, vocabulary 49152); matmuls also on those of
// a model of a billion weights (hidden 2048, MLP 8192); norms and sums on rows of 576, 2048 and
// 5120; recurrent layers and experts on the shapes of qwen3.6-35b-a3b (hidden 2048, 16 key and 32
// value heads of 128, experts of 512, 8 a row).
//
//   kernels_bench --benchmark_filter='matmul/exact_avx2/.*/rows:1/'
//
// Names say op/variant/type/shape/rows/threads. bytes_per_second counts the weights once a call;
// macs is multiply-adds a second. lay_out_panels/type is what a load does to weights. Weights
// rotate through several copies, 64 MB in all, because in a real decode step each is read once and
// the second-level cache serves none of it.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/call.h"
#include "kernels/device.h"
#include "kernels/dispatch.h"
#include "kernels/panels.h"
#include "kernels/trace.h"
#include "kernels/variants.h"
#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

constexpr int64_t kWeightFootprint = 64 << 20;

class Buffer {
 public:
  explicit Buffer(uint64_t bytes)
      : memory_(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64), std::free) {}
  [[nodiscard]] char* bytes() const { return static_cast<char*>(memory_.get()); }
  [[nodiscard]] float* floats() const { return static_cast<float*>(memory_.get()); }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_;
};

Buffer random_floats(int64_t count) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Buffer buffer(static_cast<uint64_t>(count) * sizeof(float));
  for (int64_t i = 0; i < count; ++i) buffer.floats()[i] = uniform(random);
  return buffer;
}

// Weights of any bytes whose values are neither denormal nor huge, which would change the timing:
// every 16-bit word is an ordinary half, and every pair of them an ordinary float.
Buffer random_weights(int64_t bytes) {
  std::minstd_rand random(2);
  Buffer buffer(static_cast<uint64_t>(bytes));
  for (int64_t i = 0; i < bytes; ++i) {
    const auto value = static_cast<int>(random() >> 8);
    buffer.bytes()[i] = static_cast<char>(i % 2 == 0 ? value : 0x3c + (value & 1));
  }
  return buffer;
}

// Runs the row in the benchmark's loop; `next` may change the arguments before each run.
template <typename Args, typename Next>
void measure(benchmark::State& state, const Variant& row, Args args, int threads, Next next) {
  ThreadPool pool(threads);
  Trace trace;
  const OpCall call = call_of(args, Phase::kPrefill);
  const uint64_t bytes =
      row.scratch_bytes == nullptr ? 0 : row.scratch_bytes(call, KernelParams{}, threads);
  const Buffer memory(bytes);
  KernelContext context;
  context.threads = &pool;
  context.trace = &trace;
  context.scratch = memory.bytes();
  context.scratch_bytes = context.declared_bytes = bytes;
  const auto function = std::get<void (*)(const Args&, KernelContext&)>(row.function);
  int64_t iteration = 0;
  for ([[maybe_unused]] auto _ : state) {
    next(args, iteration++);
    function(args, context);
  }
}

struct Shape {
  DType type;
  int64_t n, k;
};

void bench_matmul(benchmark::State& state, const Variant& row, const Shape& shape, int64_t rows,
                  int threads) {
  const int64_t weight_bytes = shape.n * row_bytes(shape.type, shape.k);
  const int64_t copies = std::max<int64_t>(1, kWeightFootprint / weight_bytes);
  const Buffer x = random_floats(rows * shape.k);
  const Buffer weights = random_weights(copies * weight_bytes);
  const Buffer out(static_cast<uint64_t>(rows * shape.n) * sizeof(float));
  MatmulArgs args;
  args.x = x.floats();
  args.weight_type = shape.type;
  args.out = out.floats();
  args.rows = rows;
  args.n = shape.n;
  args.k = shape.k;
  // Any bytes are panels as well as rows.
  args.in_panels = row.layout == WeightLayout::kPanels;
  measure(state, row, args, threads, [&](MatmulArgs& a, int64_t iteration) {
    a.weight = weights.bytes() + iteration % copies * weight_bytes;
    a.panels = a.weight;
  });
  const auto runs = static_cast<double>(state.iterations());
  state.SetBytesProcessed(state.iterations() * weight_bytes);
  state.counters["macs"] = benchmark::Counter(runs * static_cast<double>(rows * shape.n * shape.k),
                                              benchmark::Counter::kIsRate);
}

void bench_attention(benchmark::State& state, const Variant& row, int64_t rows, int64_t first,
                     int threads) {
  constexpr int64_t kHeads = 9, kKvHeads = 3, kHeadDim = 64;
  const int64_t capacity = first + rows;
  const Buffer q = random_floats(rows * kHeads * kHeadDim);
  const Buffer k = random_floats(rows * kKvHeads * kHeadDim);
  const Buffer cache_k = random_floats(kKvHeads * capacity * kHeadDim);
  const Buffer cache_v = random_floats(kKvHeads * capacity * kHeadDim);
  const Buffer out(static_cast<uint64_t>(rows * kHeads * kHeadDim) * sizeof(float));
  const AttentionArgs args{
      q.floats(),   k.floats(), k.floats(), cache_k.floats(), cache_v.floats(), DType::kF32,
      out.floats(), rows,       kHeads,     kKvHeads,         kHeadDim,         capacity,
      first,        0.125F};
  measure(state, row, args, threads, [](AttentionArgs&, int64_t) {});
  // Multiply-adds of scores and values over the visible positions.
  const int64_t visible = rows * first + rows * (rows + 1) / 2;
  state.counters["macs"] =
      benchmark::Counter(static_cast<double>(state.iterations() * visible * kHeads * kHeadDim * 2),
                         benchmark::Counter::kIsRate);
}

void bench_rms_norm(benchmark::State& state, const Variant& row, int64_t k, int64_t rows,
                    int threads) {
  const Buffer x = random_floats(rows * k), weight = random_floats(k);
  const Buffer out = random_floats(rows * k);  // in place it would shrink to denormals
  const RmsNormArgs args{x.floats(), weight.floats(), out.floats(), rows, k, 1e-5F};
  measure(state, row, args, threads, [](RmsNormArgs&, int64_t) {});
}

// The residual grows by x each time, which changes no timing.
void bench_add_rms_norm(benchmark::State& state, const Variant& row, int64_t k, int64_t rows,
                        int threads) {
  const Buffer x = random_floats(rows * k), weight = random_floats(k);
  const Buffer residual = random_floats(rows * k), out = random_floats(rows * k);
  const AddRmsNormArgs args{x.floats(), residual.floats(), weight.floats(), out.floats(), rows, k,
                            1e-5F};
  measure(state, row, args, threads, [](AddRmsNormArgs&, int64_t) {});
}

// Heads of 128, 32 of them a token.
void bench_gated_rms_norm(benchmark::State& state, const Variant& row, int64_t rows, int threads) {
  constexpr int64_t kHeads = 32, kDim = 128;
  const int64_t count = rows * kHeads * kDim;
  const Buffer x = random_floats(count), z = random_floats(count), weight = random_floats(kDim);
  const Buffer out = random_floats(count);
  const GatedRmsNormArgs args{x.floats(), z.floats(), weight.floats(), out.floats(), rows * kHeads,
                              kDim,       1e-5F};
  measure(state, row, args, threads, [](GatedRmsNormArgs&, int64_t) {});
}

void bench_rope(benchmark::State& state, const Variant& row, int64_t rows, int threads) {
  const Buffer x = random_floats(rows * 576);
  const RopeArgs args{x.floats(), rows, 9, 64, 64, 1000, 1e5, RopePairing::kAdjacent};
  measure(state, row, args, threads, [](RopeArgs&, int64_t) {});
}

void bench_swiglu(benchmark::State& state, const Variant& row, int64_t rows, int threads) {
  const Buffer gate = random_floats(rows * 1536), out = random_floats(rows * 1536);
  const SwigluArgs args{gate.floats(), gate.floats(), out.floats(), rows, 1536};
  measure(state, row, args, threads, [](SwigluArgs&, int64_t) {});
}

void bench_add(benchmark::State& state, const Variant& row, int64_t k, int64_t rows, int threads) {
  const Buffer x = random_floats(rows * k), out = random_floats(rows * k);
  const AddArgs args{x.floats(), x.floats(), out.floats(), rows, k};
  measure(state, row, args, threads, [](AddArgs&, int64_t) {});
}

// States rotate like weights: each layer has its own.
void bench_delta_rule(benchmark::State& state, const Variant& row, int64_t rows, int threads) {
  constexpr int64_t kKeyHeads = 16, kValueHeads = 32, kDim = 128;
  constexpr int64_t kWidth = (2 * kKeyHeads + kValueHeads) * kDim;
  constexpr int64_t kState = kValueHeads * kDim * kDim;
  constexpr int64_t kCopies = 32;
  const Buffer qkv = random_floats(rows * kWidth), gates = random_floats(rows * kValueHeads);
  const Buffer states = random_floats(kCopies * kState);
  const Buffer out = random_floats(rows * kValueHeads * kDim);
  const GatedDeltaRuleArgs args{.qkv = qkv.floats(),
                                .a = gates.floats(),
                                .b = gates.floats(),
                                .a_log = gates.floats(),
                                .dt_bias = gates.floats(),
                                .states = states.floats(),
                                .out = out.floats(),
                                .rows = rows,
                                .key_heads = kKeyHeads,
                                .value_heads = kValueHeads,
                                .key_dim = kDim,
                                .value_dim = kDim,
                                .slots = 1,
                                .first_position = 1000};
  measure(state, row, args, threads, [&](GatedDeltaRuleArgs& a, int64_t iteration) {
    a.states = states.floats() + iteration % kCopies * kState;
  });
  state.SetBytesProcessed(state.iterations() * 2 * kState * static_cast<int64_t>(sizeof(float)));
}

void bench_causal_conv(benchmark::State& state, const Variant& row, int64_t rows, int threads) {
  constexpr int64_t kChannels = 8192, kWidth = 4, kRing = 8;
  const Buffer x = random_floats(rows * kChannels), weight = random_floats(kChannels * kWidth);
  const Buffer inputs = random_floats(kRing * kChannels), out = random_floats(rows * kChannels);
  const CausalConvArgs args{x.floats(), weight.floats(), inputs.floats(), out.floats(), rows,
                            kChannels,  kWidth,          kRing,           1000};
  measure(state, row, args, threads, [](CausalConvArgs&, int64_t) {});
}

// Selections of random experts, as [rows, 2 * top_k] words.
Buffer random_selections(int64_t rows, int64_t experts, int64_t top_k) {
  std::minstd_rand random(3);
  Buffer selection(static_cast<uint64_t>(rows * 2 * top_k) * sizeof(float));
  for (int64_t r = 0; r < rows; ++r) {
    auto* ids = reinterpret_cast<int32_t*>(selection.floats() + r * 2 * top_k);
    const auto step = static_cast<int64_t>(random()) % (experts / top_k);
    for (int64_t j = 0; j < top_k; ++j) {
      ids[j] = static_cast<int32_t>(j * (experts / top_k) + step);
      selection.floats()[r * 2 * top_k + top_k + j] = 0.125F;
    }
  }
  return selection;
}

constexpr int64_t kExperts = 128, kTopK = 8, kHidden = 2048, kExpertWidth = 512;
constexpr int64_t kMostRows = 2048;

// One of each matrix: a row's experts are others than those of the row before.
void bench_expert_swiglu(benchmark::State& state, const Variant& row, DType type, int64_t rows,
                         int threads) {
  const Buffer x = random_floats(rows * kHidden);
  const Buffer weights = random_weights(kExperts * kExpertWidth * row_bytes(type, kHidden));
  const Buffer selections = random_selections(kMostRows, kExperts, kTopK);
  const Buffer out = random_floats(rows * kTopK * kExpertWidth);
  const ExpertMatmulSwigluArgs args{.x = x.floats(),
                                    .selection = selections.floats(),
                                    .gate = weights.bytes(),
                                    .up = weights.bytes(),
                                    .weight_type = type,
                                    .out = out.floats(),
                                    .rows = rows,
                                    .experts = kExperts,
                                    .top_k = kTopK,
                                    .n = kExpertWidth,
                                    .k = kHidden};
  measure(state, row, args, threads, [&](ExpertMatmulSwigluArgs& a, int64_t iteration) {
    a.selection = selections.floats() + iteration % (kMostRows - rows + 1) * 2 * kTopK;
  });
  state.SetItemsProcessed(state.iterations() * rows);
}

void bench_expert_combine(benchmark::State& state, const Variant& row, DType type, int64_t rows,
                          int threads) {
  const Buffer x = random_floats(rows * kTopK * kExpertWidth);
  const Buffer weights = random_weights(kExperts * kHidden * row_bytes(type, kExpertWidth));
  const Buffer selections = random_selections(kMostRows, kExperts, kTopK);
  const Buffer out = random_floats(rows * kHidden);
  const ExpertMatmulCombineArgs args{.x = x.floats(),
                                     .selection = selections.floats(),
                                     .down = weights.bytes(),
                                     .weight_type = type,
                                     .out = out.floats(),
                                     .rows = rows,
                                     .experts = kExperts,
                                     .top_k = kTopK,
                                     .n = kHidden,
                                     .k = kExpertWidth};
  measure(state, row, args, threads, [&](ExpertMatmulCombineArgs& a, int64_t iteration) {
    a.selection = selections.floats() + iteration % (kMostRows - rows + 1) * 2 * kTopK;
  });
  state.SetItemsProcessed(state.iterations() * rows);
}

void bench_route(benchmark::State& state, const Variant& row, int64_t rows, int threads) {
  const Buffer logits = random_floats(rows * 256), selection = random_floats(rows * 16);
  const RouteArgs args{logits.floats(),          selection.floats(), rows, 256, 8,
                       RouteWeights::kOfSelected};
  measure(state, row, args, threads, [](RouteArgs&, int64_t) {});
}

std::string tail(int64_t rows, int threads) {
  return "/rows:" + std::to_string(rows) + "/threads:" + std::to_string(threads);
}

template <typename Bench, typename... Args>
void add_benchmark(const std::string& name, const Bench& bench, const Variant& row, Args... args) {
  const std::string full = std::string(op_name(row.op)) + "/" + row.name + name;
  benchmark::RegisterBenchmark(full.c_str(), [=](benchmark::State& state) {
    bench(state, row, args...);
  })->UseRealTime();
}

bool runs_matmul(const Variant& row, const Shape& shape, int64_t rows) {
  OpCall call{Op::kMatmul, Phase::kPrefill, shape.type, rows, shape.n, shape.k, 0};
  call.in_panels = has_panels(shape.type) && shape.type != DType::kQ4_K;  // as big as rows
  return row.supports == nullptr || row.supports(call).empty();
}

void register_matmul(const Variant& row, int threads) {
  std::vector<Shape> shapes = {{DType::kQ4_1, 192, 576},   {DType::kP8, 1536, 576},
                               {DType::kBF16, 1536, 576},  {DType::kF16, 1536, 576},
                               {DType::kF32, 1536, 576},   {DType::kQ8_0, 49152, 576},
                               {DType::kQ8_0, 2048, 2048}, {DType::kBF16, 2048, 2048}};
  for (const DType type : {DType::kQ4_1, DType::kP4}) {
    for (const auto& [n, k] : {std::pair{576, 576},
                               {1536, 576},
                               {576, 1536},
                               {2048, 2048},
                               {8192, 2048},
                               {2048, 8192}}) {
      shapes.push_back({type, n, k});
    }
  }
  for (const Shape& shape : shapes) {
    for (const int64_t rows : {1, 2, 3, 4, 5, 6, 8, 16, 64, 512}) {
      if (rows == 512 && shape.n > 10000) continue;  // a head is only asked for a few rows
      if (!runs_matmul(row, shape, rows)) continue;
      add_benchmark("/" + std::string(dtype_name(shape.type)) + "/" + std::to_string(shape.n) +
                        "x" + std::to_string(shape.k) + tail(rows, threads),
                    bench_matmul, row, shape, rows, threads);
    }
  }
}

void register_experts(const Variant& row, int threads) {
  if (row.layout == WeightLayout::kPanels) return;  // which are not laid out here
  for (const DType type : {DType::kP4, DType::kBF16}) {
    const OpCall call{row.op, Phase::kPrefill, type, 1, kExpertWidth, kHidden, kExperts};
    if (row.supports != nullptr && !row.supports(call).empty()) continue;
    for (const int64_t rows : {1, 4, 16, 64, 128, 256, 512, 2048}) {
      const std::string name = "/" + std::string(dtype_name(type)) + tail(rows, threads);
      const auto bench =
          row.op == Op::kExpertMatmulSwiglu ? bench_expert_swiglu : bench_expert_combine;
      add_benchmark(name, bench, row, type, rows, threads);
    }
  }
}

void register_row(const Variant& row, int threads) {
  if (row.op == Op::kMatmul) return register_matmul(row, threads);
  if (row.op == Op::kExpertMatmulSwiglu || row.op == Op::kExpertMatmulCombine) {
    return register_experts(row, threads);
  }
  for (const int64_t rows : {1, 512}) {
    if (row.op == Op::kAttention) {
      for (const int64_t first : {0, 128, 1024, 4096}) {
        add_benchmark("/from:" + std::to_string(first) + tail(rows, threads), bench_attention, row,
                      rows, first, threads);
      }
    }
    for (const int64_t k : {576, 2048, 5120}) {
      const std::string name = "/" + std::to_string(k) + tail(rows, threads);
      if (row.op == Op::kRmsNorm) add_benchmark(name, bench_rms_norm, row, k, rows, threads);
      if (row.op == Op::kAdd) add_benchmark(name, bench_add, row, k, rows, threads);
      if (row.op == Op::kAddRmsNorm) add_benchmark(name, bench_add_rms_norm, row, k, rows, threads);
    }
    if (row.op == Op::kGatedRmsNorm) {
      add_benchmark(tail(rows, threads), bench_gated_rms_norm, row, rows, threads);
    }
    if (row.op == Op::kRope) add_benchmark(tail(rows, threads), bench_rope, row, rows, threads);
    if (row.op == Op::kSwiglu) add_benchmark(tail(rows, threads), bench_swiglu, row, rows, threads);
    if (row.op == Op::kGatedDeltaRule) {
      add_benchmark(tail(rows, threads), bench_delta_rule, row, rows, threads);
    }
    if (row.op == Op::kCausalConv) {
      add_benchmark(tail(rows, threads), bench_causal_conv, row, rows, threads);
    }
    if (row.op == Op::kRoute) add_benchmark(tail(rows, threads), bench_route, row, rows, threads);
  }
}

// 128 rows that stay in the second-level cache, as a strip of a load does; bytes of rows.
void bench_lay_out_panels(benchmark::State& state, DType type) {
  constexpr int64_t kRows = 128, kColumns = 2048;
  const int64_t bytes = kRows * row_bytes(type, kColumns);
  const Buffer rows = random_weights(bytes);
  const Buffer panels(panel_bytes(type, kRows, kColumns));
  for (auto _ : state) {
    lay_out_panels(type, rows.bytes(), kRows, kColumns, panels.bytes());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void register_all() {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    if (!has_panels(type)) continue;
    benchmark::RegisterBenchmark(("lay_out_panels/" + std::string(dtype_name(type))).c_str(),
                                 bench_lay_out_panels, type);
  }
  const Device device = detect_cpu();
  for (const Variant& row : all_variants()) {
    if (row.isa > device.best_isa) continue;
    register_row(row, 1);
    if (device.cores > 1) register_row(row, device.cores);
  }
}

}  // namespace
}  // namespace reckon::kernels

int main(int argc, char** argv) {
  reckon::kernels::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
