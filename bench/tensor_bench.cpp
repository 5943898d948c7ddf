// Speed of making up weights: bytes a second of one core, by type.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "tensor/random_rows.h"

namespace reckon {
namespace {

void random_rows(benchmark::State& state, DType type) {
  constexpr int64_t kRows = 16, kColumns = 4096;
  const RandomRows source(1, "w", RandomKind::kMatrix, kRows, kColumns);
  std::vector<uint8_t> out(static_cast<size_t>(kRows * row_bytes(type, kColumns)));
  for (auto _ : state) {
    if (!source.rows(0, kRows, type, out.data()).ok()) state.SkipWithError("failed");
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(out.size()));
}

BENCHMARK_CAPTURE(random_rows, p4, DType::kP4);
BENCHMARK_CAPTURE(random_rows, p8, DType::kP8);
BENCHMARK_CAPTURE(random_rows, bf16, DType::kBF16);
BENCHMARK_CAPTURE(random_rows, f32, DType::kF32);

}  // namespace
}  // namespace reckon

BENCHMARK_MAIN();
