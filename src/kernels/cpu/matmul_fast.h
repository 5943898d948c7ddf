// The fast matmul of prefill: tiles of bfloat16, whose products are summed in float32. Plain types
// only.
//
// Weights are dequantised from panels (kernels/panels.h) in float32 and rounded to bfloat16, as are
// activations; a product of the two is exact. A row of outputs does not depend on the other rows.
// Infinities and NaNs among activations spoil their own row.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

constexpr const char* kFastAmx = "fast_amx";

// The tile shapes of KernelParams, as weight rows x tokens. Bits do not depend on them.
//   square (and auto)  32 x 32: the activations of 32 tokens stay in the first-level cache while
//                      they pass a band of up to 8 panels of 16 weight rows
//   wide               16 x 64: likewise with 64 tokens, so that weights are read half as often
//   tall               64 x 16: the weights of 4 panels stay while all tokens pass over them
struct FastTile {
  int64_t panels = 2;  // that are multiplied at a time
  int64_t tokens = 2;  // likewise, in tiles of 16
};
[[nodiscard]] FastTile fast_tile(TileShape shape);

// AMX (tiles, bfloat16) and AVX-512 (F, BW, VL, BF16). Needs fast_matmul_scratch().total.
void matmul_fast_amx(const MatmulArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_fast_amx_hash();

// Byte offsets in the scratch of one call.
struct FastMatmulScratch {
  uint64_t threads = 0;  // where the first thread's part begins, after the activations
  uint64_t outputs = 0;  // in a thread's part, after the weights
  uint64_t thread_bytes = 0;
  uint64_t total = 0;
  int64_t band_panels = 0;  // panels of weights that a task takes
  int64_t row_tiles = 0;    // tiles of 16 tokens that there is room for
};
[[nodiscard]] FastMatmulScratch fast_matmul_scratch(int64_t rows, int64_t n, int64_t k, int threads,
                                                    TileShape shape = TileShape::kAuto);

// A tile of the processor: 16 rows of 64 bytes. Activations and weights are kept in whole tiles.
constexpr int64_t kTileSide = 16;
constexpr int64_t kTileBytes = 1024;
constexpr int64_t kTileColumns = 32;  // of bfloat16: the elements of K that a tile spans
// K is taken in parts of so many tiles: what a pair of activation tiles has of it, 16 KB, stays in
// the first-level cache while it passes all weights of a band.
constexpr int64_t kPartTiles = 8;

}  // namespace reckon::kernels::cpu
