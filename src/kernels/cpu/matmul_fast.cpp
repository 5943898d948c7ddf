#include "kernels/cpu/matmul_fast.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kWidestBand = 8;
constexpr int64_t kTasksOfThread = 4;

int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// As wide as leaves every thread some tasks: a wide band reads activations less often. Even, as
// tiles go in pairs.
int64_t band_panels(int64_t n, int threads) {
  const int64_t panels = divide_up(n, kTileSide);
  int64_t band = kWidestBand;
  while (band > 2 && panels < band * kTasksOfThread * threads) band /= 2;
  return band;
}

}  // namespace

FastMatmulScratch fast_matmul_scratch(int64_t rows, int64_t n, int64_t k, int threads) {
  const int64_t row_tiles = divide_up(rows, 2 * kTileSide) * 2;
  FastMatmulScratch scratch;
  scratch.band_panels = band_panels(n, threads);
  scratch.threads = static_cast<uint64_t>(row_tiles * divide_up(k, kTileColumns) * kTileBytes);
  scratch.outputs = static_cast<uint64_t>(scratch.band_panels * kPartTiles * kTileBytes);
  scratch.thread_bytes =
      scratch.outputs + static_cast<uint64_t>(scratch.band_panels * row_tiles * kTileBytes);
  scratch.total = scratch.threads + static_cast<uint64_t>(threads) * scratch.thread_bytes;
  return scratch;
}

}  // namespace reckon::kernels::cpu
