// The fast matmuls of prefill. Plain types only.
//
// Weights are dequantised from panels (kernels/panels.h) in float32. fast_amx rounds them to
// bfloat16, as it does activations; a product of the two is exact, and products are summed in
// float32. fast_avx2 rounds neither: fused multiply-adds of float32, ascending in K. A row of
// outputs does not depend on the other rows. Infinities and NaNs among activations spoil their own
// row.
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

// ---- float32 ----

constexpr const char* kFastAvx2 = "fast_avx2";

// AVX2, FMA and F16C. Needs float_matmul_scratch().total.
void matmul_fast_avx2(const MatmulArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_fast_avx2_hash();

// Rows of a prefill pass that kernels of AVX2 take; with fewer, exact ones are faster.
constexpr int64_t kFewestAvx2Rows = 7;

constexpr int64_t kFloatTileRows = 6;  // activation rows that are multiplied together
// K is taken in parts of so many columns: a panel's weights of it, 16 KB, stay in the first-level
// cache while rows pass.
constexpr int64_t kFloatPart = 256;

// Byte offsets in the scratch of one call.
struct FloatMatmulScratch {
  uint64_t threads = 0;  // where the first thread's part begins, after the activations
  uint64_t outputs = 0;  // in a thread's part, after the weights
  uint64_t thread_bytes = 0;
  uint64_t total = 0;
  int64_t band_panels = 0;  // panels of weights that a task takes
  int64_t row_tiles = 0;    // tiles of kFloatTileRows rows
};
[[nodiscard]] FloatMatmulScratch float_matmul_scratch(int64_t rows, int64_t n, int64_t k,
                                                      int threads);

// ---- bytes ----

constexpr const char* kFastBytesAvx2 = "fast_bytes_avx2";

// Weights of codes of 4 bits. Activations as codes of 8 bits: of 32 of a row, scale = max |x| /
// 127, code = x / scale rounded to nearest even. Where max |x| is more than kByteLimit times the
// root mean square of the row, what that leaves is rounded once more, scale = max |x| / (2 127^2):
// 16 bits in all. So rounding leaves about kByteLimit / 440 of a row at most. Tiny values and those
// that are not finite are as canonical_order.h has them. AVX2, FMA and F16C. Needs
// byte_matmul_scratch().total.
void matmul_fast_bytes_avx2(const MatmulArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_fast_bytes_avx2_hash();

constexpr float kByteLimit = 8.0F;
constexpr float kLargestByte = 127.0F;
constexpr int64_t kByteTileRows = 4;  // activation rows that are multiplied together
constexpr int64_t kBytePart = 1024;   // columns of K whose weights are unpacked at a time

// One step of a group of 4 activation rows: words of 4 codes of each row side by side.
struct alignas(16) ByteTile {
  int8_t codes[8][kByteTileRows][4];
  float scales[kByteTileRows];
  float sums[kByteTileRows];  // scale * sum of codes
  int32_t group;              // of the part of K
};

struct ByteMatmulScratch {
  uint64_t counts = 0;   // of tiles, after the activations
  uint64_t threads = 0;  // after those
  uint64_t outputs = 0;  // in a thread's part, after the weights
  uint64_t thread_bytes = 0;
  uint64_t total = 0;
  int64_t band_panels = 0;  // panels of weights that a task takes
  int64_t row_tiles = 0;    // tiles of kByteTileRows rows
};
[[nodiscard]] ByteMatmulScratch byte_matmul_scratch(int64_t rows, int64_t n, int64_t k,
                                                    int threads);

}  // namespace reckon::kernels::cpu
