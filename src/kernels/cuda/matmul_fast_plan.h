// How fast_tile cuts a call, and what its kernels are told. Plain C++.
#pragma once

#include <cstdint>

#include "kernels/cuda/matmul_fast_tile.h"
#include "kernels/cuda/weight_tiles.h"
#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

// A block multiplies 128 * slices weight rows with `tokens` tokens; of a swiglu (slices 2), 128
// rows of gate and the same of up. `split` blocks, a cluster, share K and add up in ascending
// order.
struct TileCut {
  int slices = 1;   // 1, 2
  int tokens = 64;  // 16, 32, 64, 128; with one slice and no split 160, 192, 256, too
  int split = 1;    // 1, 2, 3, 4, 6, 8

  friend bool operator==(const TileCut&, const TileCut&) = default;
};

// Weights of one launch that share their activations. Swiglu: parts 0 and 1 are gate and up, out is
// part 0's.
struct TileProblem {
  const uint8_t* weight[kMaxMatmulParts] = {};
  float* out[kMaxMatmulParts] = {};
  int32_t n[kMaxMatmulParts] = {};
  // Row tiles before each part, and in all; a part starts a new tile.
  int32_t first_tile[kMaxMatmulParts + 1] = {};
  int32_t parts = 1;
  const uint8_t* x = nullptr;     // InputOrder::kTiles
  const float* scales = nullptr;  // [rows], null where rows are not scaled
  int32_t rows = 0, padded_rows = 0;
  int32_t k_blocks = 0;  // of 64
  int32_t token_tiles = 0;
  int32_t tiles = 0;  // row tiles × token tiles
  int32_t split = 1;
};

// The cut for `rows` tokens, `n` weight rows (of a swiglu, of each of the two weights) and k on a
// device of `multiprocessors`. matmul_fast_plan.cpp says by which model.
[[nodiscard]] TileCut tile_cut(TileShape wanted, bool swiglu, int64_t rows, int64_t n, int64_t k,
                               int multiprocessors);

// Rows that the converted activations have room for. The last tile of tokens may read past them, by
// up to kTokenSlack rows at the end of the buffer; what it makes of that is not stored.
[[nodiscard]] int64_t padded_tokens(int64_t rows);
inline constexpr int64_t kTokenSlack = 256;

// For tuning: one matmul with a given cut; tokens must divide padded_tokens(rows), split at most
// the number of blocks of 64 in k.
void matmul_fast_tile_cut(const MatmulArgs& args, const TileCut& cut, KernelContext& context);

// For tests: the kernels of compute capability 8.0 on any device.
void matmul_fast_tile_mma(const MatmulArgs& args, KernelContext& context);
void matmul_group_fast_tile_mma(const MatmulGroupArgs& args, KernelContext& context);
void matmul_swiglu_fast_tile_mma(const MatmulSwigluArgs& args, KernelContext& context);

}  // namespace reckon::kernels::cuda
