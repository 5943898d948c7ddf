#include "kernels/cpu/matmul_fast.h"

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kWidestBand = 8;
constexpr int64_t kTasksOfThread = 4;
constexpr int64_t kFloatBytes = 4;

int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// As wide as leaves every thread some tasks, since a wide band reads activations less often; whole
// tiles.
int64_t band_panels(int64_t n, int threads, int64_t least) {
  const int64_t panels = divide_up(n, kTileSide);
  int64_t band = kWidestBand;
  while (band > least && panels < band * kTasksOfThread * threads) band /= 2;
  return band;
}

}  // namespace

FastTile fast_tile(TileShape shape) {
  if (shape == TileShape::kTall) return {4, 1};
  if (shape == TileShape::kWide) return {1, 4};
  return {2, 2};
}

FastMatmulScratch fast_matmul_scratch(int64_t rows, int64_t n, int64_t k, int threads,
                                      TileShape shape) {
  const int64_t tokens = fast_tile(shape).tokens;
  FastMatmulScratch scratch;
  scratch.row_tiles = divide_up(rows, tokens * kTileSide) * tokens;
  const int64_t least = fast_tile(shape).panels;
  scratch.band_panels = shape == TileShape::kTall ? least : band_panels(n, threads, least);
  scratch.threads =
      static_cast<uint64_t>(scratch.row_tiles * divide_up(k, kTileColumns) * kTileBytes);
  scratch.outputs = static_cast<uint64_t>(scratch.band_panels * kPartTiles * kTileBytes);
  scratch.thread_bytes =
      scratch.outputs + static_cast<uint64_t>(scratch.band_panels * scratch.row_tiles * kTileBytes);
  scratch.total = scratch.threads + static_cast<uint64_t>(threads) * scratch.thread_bytes;
  return scratch;
}

FloatMatmulScratch float_matmul_scratch(int64_t rows, int64_t n, int64_t k, int threads) {
  FloatMatmulScratch scratch;
  scratch.row_tiles = divide_up(rows, kFloatTileRows);
  scratch.band_panels = band_panels(n, threads, 1);
  const int64_t columns = k < kFloatPart ? k : kFloatPart;
  scratch.threads = aligned(scratch.row_tiles * kFloatTileRows * k * kFloatBytes);
  scratch.outputs = aligned(scratch.band_panels * columns * kPanelLanes * kFloatBytes);
  scratch.thread_bytes = scratch.outputs + aligned(scratch.band_panels * scratch.row_tiles *
                                                   kFloatTileRows * kPanelLanes * kFloatBytes);
  scratch.total = scratch.threads + static_cast<uint64_t>(threads) * scratch.thread_bytes;
  return scratch;
}

ByteMatmulScratch byte_matmul_scratch(int64_t rows, int64_t n, int64_t k, int threads) {
  constexpr auto kByteTileBytes = static_cast<int64_t>(sizeof(ByteTile));
  constexpr auto kGroupBytes = static_cast<int64_t>(sizeof(PlanePanel));
  ByteMatmulScratch scratch;
  scratch.row_tiles = divide_up(rows, kByteTileRows);
  scratch.band_panels = band_panels(n, threads, 1);
  const int64_t groups = k / kGroup;
  scratch.counts = aligned(scratch.row_tiles * 2 * groups * kByteTileBytes);
  scratch.threads =
      scratch.counts + aligned(scratch.row_tiles * divide_up(k, kBytePart) * int64_t{4});
  scratch.outputs = aligned(scratch.band_panels * (kBytePart / kGroup) * kGroupBytes);
  scratch.thread_bytes = scratch.outputs + aligned(scratch.band_panels * scratch.row_tiles *
                                                   kByteTileRows * kPanelLanes * kFloatBytes);
  scratch.total = scratch.threads + static_cast<uint64_t>(threads) * scratch.thread_bytes;
  return scratch;
}

}  // namespace reckon::kernels::cpu
