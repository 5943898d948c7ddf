// What the two kernels of fast_tile share: which tile is whose, and how results are stored.
#pragma once

#include <cstdint>

#include "kernels/cuda/matmul_fast_plan.h"

namespace reckon::kernels::cuda {

// Which weights and tokens a tile multiplies.
struct TilePlace {
  int part, row_tile, token_tile;
};

__device__ __forceinline__ TilePlace tile_place(const TileProblem& p, int tile) {
  // Tokens first: blocks that run together share weights and sweep all of x.
  TilePlace place{0, tile / p.token_tiles, tile % p.token_tiles};
  if (p.parts > 1 && place.row_tile >= p.first_tile[1]) place.part = 1;
  if (p.parts > 2 && place.row_tile >= p.first_tile[2]) place.part = 2;
  place.row_tile -= p.first_tile[place.part];
  return place;
}

__device__ __forceinline__ float swiglu_of(float gate, float up) {
  return gate / (1 + __expf(-gate)) * up;
}

// The row scale of a token, 1 where rows are not scaled or the token is beyond them.
__device__ __forceinline__ float token_scale(const TileProblem& p, int token) {
  return p.scales != nullptr && token < p.rows ? p.scales[token] : 1.0f;
}

// The results of one lane for 8 tokens and kSlices strips of 16 weight rows, of which `row` and
// `token` are its first: values[s][e] belongs to weight row row + 16s + 8 * (e / 2) and token
// token + e % 2. Of a swiglu, slice 0 is gate and slice 1 up of the same row. What lies beyond the
// matrix is dropped, unless `whole` says that nothing does. 8 lanes store 32 contiguous bytes.
template <int kSlices, bool kSwiglu>
__device__ __forceinline__ void store_piece(const TileProblem& p, int part, int row, int token,
                                            const float (&values)[kSlices][4], float2 scales,
                                            bool whole) {
  const int n = p.n[part];
  float* to = p.out[part] + static_cast<int64_t>(token) * n + row;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int half = e / 2 * 8;
    const float scale = e % 2 == 0 ? scales.x : scales.y;
#pragma unroll
    for (int s = 0; s < (kSwiglu ? 1 : kSlices); ++s) {
      float value = values[s][e] * scale;
      if constexpr (kSwiglu) value = swiglu_of(value, values[1][e] * scale);
      const int at = s * 16 + half;
      if (whole || (token + e % 2 < p.rows && row + at < n)) (to + (e % 2) * n)[at] = value;
    }
  }
}

}  // namespace reckon::kernels::cuda
