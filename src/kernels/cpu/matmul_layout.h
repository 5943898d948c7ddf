// Tiles and scratch of the exact matmuls: what the plan declares and the kernels use.
//
// Plain types only; the functions are defined in matmul_layout.cpp, for every machine.
#pragma once

#include <cstdint>

#include "kernels/op.h"
#include "tensor/blocks.h"

namespace reckon::kernels::cpu {

// Bytes of scratch, so that what comes behind begins at a multiple of 64.
[[nodiscard]] uint64_t aligned(int64_t bytes);

// Up to this many activation rows go straight over the file's weight blocks; more rows go by tiles
// of unpacked weights. Both are the same arithmetic.
constexpr int64_t kDirectRows = 8;

// Tiles do not depend on the thread count: threads share out weight tiles, or bands of them.
constexpr int64_t kWeightTile = 16;  // weight rows
constexpr int64_t kTokenTile = 32;   // activation rows
constexpr int64_t kBandTiles = 8;    // weight tiles of a band (TileOrder::kBand8)
constexpr int64_t kPanelRows = 4;    // weight rows that are multiplied together
constexpr int64_t kTileRows = 8;     // activation rows that are multiplied together

// One activation row's group as direct matmuls read it; codes in the order of the weight format.
struct alignas(32) RowGroup {
  int16_t codes[32];
  float scale;
  float sum;  // scale * sum of codes
};

// The same group of 8 activation rows, pairs of codes side by side.
struct alignas(32) TileGroup {
  int16_t codes[16][kTileRows][2];
  float scales[kTileRows];
  float sums[kTileRows];
};

// The weights of the same group of 4 weight rows, unpacked.
struct alignas(32) PanelBlock {
  int16_t codes[kPanelRows][32];
  float scales[kPanelRows];
  float minima[kPanelRows];
};

// What the AVX-512 kernel makes of them: a lane for each of 16 weight rows.
constexpr int64_t kPanelLanes = 16;
constexpr int64_t kPlaneTile = 32;       // weight rows of a tile
constexpr int64_t kFloatWeightRows = 8;  // of one task, float weights straight from the file

// One activation row's group: code = 256 * high + low.
struct alignas(16) PlaneGroup {
  int8_t high[32];
  uint8_t low[32];
  float scale;
  float sum;  // scale * sum of codes
  // What takes the offset that is added to weight codes away again: minus the offset times the sum
  // of `high` or, for weight codes of 7 bits at most, of the codes; of the whole group, or of each
  // half for weights that have scales of halves.
  int32_t starts[2];
};

// The weights of the same group of 16 weight rows: 4 codes of each row side by side.
struct alignas(64) PlanePanel {
  uint8_t codes[8][kPanelLanes][4];
  float scales[kPanelLanes];
  float minima[kPanelLanes];
};

// Byte offsets in the scratch of one call: activations, then one weight buffer a thread.
struct MatmulScratch {
  uint64_t weights = 0;
  uint64_t weights_stride = 0;
  uint64_t total = 0;
};

[[nodiscard]] MatmulScratch scalar_matmul_scratch(DType type, int64_t rows, int64_t k);
[[nodiscard]] MatmulScratch tiled_matmul_scratch(DType type, int64_t rows, int64_t k,
                                                 TileOrder order, int threads);
[[nodiscard]] MatmulScratch plane_matmul_scratch(DType type, int64_t rows, int64_t k,
                                                 TileOrder order, int threads);

// Of the matmul over panels (PlaneGroups of all rows).
[[nodiscard]] uint64_t panel_matmul_scratch(DType type, int64_t rows, int64_t k);

// kBand8 where it makes a difference: several token tiles and several bands of tiles of
// `weight_tile` rows.
[[nodiscard]] TileOrder effective_tile_order(int64_t rows, int64_t n, int64_t weight_tile,
                                             TileOrder wanted);

// Weights of integer codes (the int16 activation path); else floats.
[[nodiscard]] bool has_integer_codes(DType type);

// Groups of kGroup activations that a row of k weights is multiplied in: those of whole weight
// blocks. Activations beyond k are taken as zeros. Integer formats only.
[[nodiscard]] int64_t activation_groups(DType type, int64_t k);

// Columns of a float32 row filled up to whole lanes.
[[nodiscard]] int64_t padded_columns(int64_t k);

// Bytes of a file's row of k weights (dtype.h's row_bytes, reachable from here).
[[nodiscard]] int64_t weight_row_bytes(DType type, int64_t k);

}  // namespace reckon::kernels::cpu
